# SPDX-License-Identifier: Apache-2.0
"""Prints rows as a table for a terminal, or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import typer

from lakeformat.cli.grid import GridColumn, print_grid

__all__ = [
    "AsJson",
    "PrintedReport",
    "Shown",
    "listed",
    "print_json",
    "print_report",
    "print_rows",
    "shown_time",
]


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON array, for programs.")]


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of the printed table: its key in the rows, its heading, and its format."""

    key: str
    heading: str
    show: Callable[[Any], str] = str
    """Returns the text of a value that is not None."""


class PrintedReport(Protocol):
    """The part of an operation's report that a command prints."""

    @property
    def reason(self) -> str:
        """One sentence: the work of the operation, or the reason why it did nothing."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, ready for JSON."""
        ...


def print_report(report: PrintedReport, *, as_json: bool) -> None:
    """Print the one-sentence summary of a report; with ``as_json`` print the whole report."""
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.reason)


def print_rows(
    columns: Sequence[Shown], values: Mapping[str, Sequence[Any]], *, empty: str
) -> None:
    """Print rows as a table; ``values`` has the values of each column, by key.

    Without rows the text ``empty`` is printed.
    """
    if not values[columns[0].key]:
        typer.echo(empty)
        return
    grid = []
    for column in columns:
        found = values[column.key]
        texts = ["" if value is None else column.show(value) for value in found]
        if any(texts):  # a column without any value only takes space
            is_number = all(value is None or isinstance(value, int) for value in found)
            grid.append(GridColumn(column.heading, texts, is_number))
    print_grid(grid)


def print_json(
    rows: Iterable[Mapping[str, Any]], plain: Callable[[Any], Any] | None = None
) -> None:
    """Print a JSON array with one row in each line, each as soon as ``rows`` yields it.

    ``plain`` converts values that JSON has no form for; with None such a value raises
    ``TypeError``.
    """
    encode = json.JSONEncoder(check_circular=False, default=plain).encode
    before = "["
    for row in rows:
        sys.stdout.write(before + encode(row))
        before = ",\n "
    sys.stdout.write("[]\n" if before == "[" else "]\n")


def listed(columns: str) -> list[str]:
    """Return the names in a list such as ``a,b``."""
    return [name.strip() for name in columns.split(",")]


def shown_time(text: str) -> str:
    """Return an ISO time in UTC, such as ``2024-01-31T10:00:00``, as ``2024-01-31 10:00:00Z``."""
    return text.replace("T", " ") + "Z"
