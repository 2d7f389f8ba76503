# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share, so that each help text describes them alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "DryRun",
    "MainTableArgument",
    "NameInCatalogArgument",
    "PartitionsWhereOption",
    "SaveOption",
    "TableArgument",
    "listed",
    "time_of",
]

_COMMA = re.compile(r",(?![^(]*\))")
"""Matches a comma outside of parentheses."""

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="database.table, a branch as 'database.table$branch_dev', or the table's directory",
    ),
]
MainTableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="database.table, or the table's directory")
]
NameInCatalogArgument = Annotated[
    str, typer.Argument(metavar="DATABASE.TABLE", help="The name of the table.")
]
PartitionsWhereOption = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="""Only these partitions, such as "dt >= '2024-01-31'"."""),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
SaveOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the list of deleted files (in a dry run, of files to delete), with the "
        "reasons, to this file as JSON lines.",
    ),
]

_DIGITS_OF_A_DATE = 8


def listed(options: Sequence[str] | None) -> list[str]:
    """Return the names in all values of a repeatable option ``A,B``; empty for None."""
    return [name.strip() for names in options or () for name in _COMMA.split(names)]


def time_of(text: str | None) -> str | int | None:
    """Return a text of digits as a number of milliseconds since 1970.

    A text of 8 digits is a date such as ``20240131``. It is returned unchanged, like None and any
    text with other characters.
    """
    if text is None or not text.isdecimal() or len(text) == _DIGITS_OF_A_DATE:
        return text
    return int(text)
