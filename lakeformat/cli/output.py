"""Rows for a terminal or for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table as Grid

__all__ = ["AsJson", "print_rows", "timestamp"]

UNBOUNDED_WIDTH: Final = 10_000
"""For files and pipes: a line that wraps cannot be searched."""

AsJson = Annotated[bool, typer.Option("--json", help="One JSON array, for programs.")]


def print_rows(
    columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str
) -> None:
    """Print some columns (key to heading) of each row, or all of it as JSON.

    ``empty`` says that there is none, and of what.
    """
    if as_json:
        typer.echo(json.dumps(list(rows), default=str))
        return
    if not rows:
        typer.echo(empty)
        return
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column, heading in columns.items():
        numbers = all(isinstance(row[column], int) for row in rows)
        grid.add_column(heading, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        grid.add_row(*("" if row[column] is None else str(row[column]) for column in columns))
    width = None if sys.stdout.isatty() else UNBOUNDED_WIDTH
    Console(highlight=False, width=width).print(grid)


def timestamp(epoch_millis: int) -> str:
    """An instant in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(epoch_millis / 1000, tz=UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + "Z"
