"""Rows for a terminal or for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table as Grid
from rich.text import Text

__all__ = ["AsJson", "Shown", "print_grid", "print_rows", "size"]

UNBOUNDED_WIDTH: Final = 10_000
"""For files and pipes: a line that wraps cannot be searched."""

_ENOUGH = 16
"""A column that folds is still readable at this width."""
_GAP = 2

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON array, for programs.")]


@dataclass(frozen=True, slots=True)
class Shown:
    """A column as people see it."""

    key: str
    heading: str
    show: Callable[[Any], str] = str
    """How a value that is there looks."""


def print_rows(
    columns: Sequence[Shown], rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str
) -> None:
    """Print some columns of each row, or all of it as JSON.

    ``empty`` says that there is none, and of what.
    """
    if as_json:
        typer.echo(json.dumps(list(rows), default=str))
        return
    if not rows:
        typer.echo(empty)
        return
    headings: dict[str, JustifyMethod] = {}
    cells = []
    for column in columns:
        values = [row[column.key] for row in rows]
        texts = ["" if value is None else column.show(value) for value in values]
        if any(texts):  # what is said of no row only takes room
            is_number = all(isinstance(value, int) for value in values)
            headings[column.heading] = "right" if is_number else "left"
            cells.append(map(Text, texts))  # no markup: "[2]" is a key here
    print_grid(headings, list(zip(*cells, strict=True)))


def print_grid(headings: Mapping[str, JustifyMethod], lines: Sequence[Sequence[Text]]) -> None:
    """Print lines under headings or, where a terminal is too narrow for that, line by line."""
    width = None if sys.stdout.isatty() else UNBOUNDED_WIDTH
    console = Console(highlight=False, width=width)
    widths = [
        max(cell_len(heading), *(text.cell_len for text in column))
        for heading, column in zip(headings, zip(*lines, strict=True), strict=True)
    ]
    if sum(min(width, _ENOUGH) + _GAP for width in widths) > console.width:
        _print_one_by_one(console, list(headings), lines)
        return
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for heading, justify in headings.items():
        grid.add_column(Text(heading), justify=justify, overflow="fold")
    for line in lines:
        grid.add_row(*line)
    console.print(grid)


def _print_one_by_one(
    console: Console, headings: Sequence[str], lines: Sequence[Sequence[Text]]
) -> None:
    """Each line as a block of what its cells are and hold."""
    for number, line in enumerate(lines):
        if number:
            console.print()
        block = Grid.grid("", "", padding=(0, _GAP))
        block.columns[0].no_wrap = True
        block.columns[1].overflow = "fold"
        for heading, text in zip(headings, line, strict=True):
            if text.plain:
                block.add_row(Text(heading, style="bold"), text)
        console.print(block)


def size(count: int) -> str:
    """Bytes as people read them: ``912 B``, ``1.5 MiB``."""
    amount, shown = float(count), f"{count} B"
    for unit in _UNITS:
        if amount < 1024:
            break
        amount /= 1024
        shown = f"{amount:.1f} {unit}"
    return shown
