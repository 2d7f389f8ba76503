"""Rows for people, or as JSON for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import typer

from lakeformat.cli.grid import Column, print_grid

__all__ = [
    "AsJson",
    "Report",
    "Shown",
    "listed",
    "print_json",
    "print_report",
    "print_rows",
    "shown_time",
]


AsJson = Annotated[bool, typer.Option("--json", help="One JSON array, for programs.")]


@dataclass(frozen=True, slots=True)
class Shown:
    """A column as people see it."""

    key: str
    heading: str
    show: Callable[[Any], str] = str
    """How a value that is there looks."""


class Report(Protocol):
    """What an operation tells of itself."""

    @property
    def reason(self) -> str:
        """One sentence: what happened, or why nothing did."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        ...


def print_report(report: Report, *, as_json: bool) -> None:
    """Print a report whose one sentence says it all."""
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.reason)


def print_rows(
    columns: Sequence[Shown], values: Mapping[str, Sequence[Any]], *, empty: str
) -> None:
    """Print some columns of rows; ``empty`` says that there is none, and of what."""
    if not values[columns[0].key]:
        typer.echo(empty)
        return
    grid = []
    for column in columns:
        found = values[column.key]
        texts = ["" if value is None else column.show(value) for value in found]
        if any(texts):  # what is said of no row only takes room
            is_number = all(value is None or isinstance(value, int) for value in found)
            grid.append(Column(column.heading, texts, is_number))
    print_grid(grid)


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print one array, a line per row, each as soon as it is there."""
    encode = json.JSONEncoder(check_circular=False).encode
    before = "["
    for row in rows:
        sys.stdout.write(before + encode(row))
        before = ",\n "
    sys.stdout.write("[]\n" if before == "[" else "]\n")


def listed(columns: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in columns.split(",")]


def shown_time(text: str) -> str:
    """A time of JSON, which is in UTC, as people see it."""
    return text.replace("T", " ") + "Z"
