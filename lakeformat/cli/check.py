# SPDX-License-Identifier: Apache-2.0
"""``lake check``: checks the rows of a table, or of staged results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.grid import GridColumn, print_grid
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.errors import InvalidRequestError
from lakeformat.tables.named_once import named_once

if TYPE_CHECKING:
    from lakeformat import CheckReport

__all__ = ["register"]

EXIT_FAILED = 1
_STYLE = {"passed": "green", "warned": "yellow", "failed": "bold red"}

StagedOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ADDRESS",
        help="Check this staged result, which is written but not published, instead of the table's "
        "rows. Repeatable. Not for Mixed tables.",
    ),
]
WhereOption = Annotated[
    str | None, typer.Option(metavar="SQL", help="Check only rows that meet this condition.")
]
MinRowsOption = Annotated[int | None, typer.Option(metavar="NUMBER", help="Fail with fewer rows.")]
MaxRowsOption = Annotated[int | None, typer.Option(metavar="NUMBER", help="Fail with more rows.")]
NotNullOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column that must have no nulls. Repeatable."),
]
UniqueOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN,...",
        help="A column, or columns together, whose values must be unique; nulls pass. Repeatable.",
    ),
]
AcceptedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accepted-values",
        metavar="COLUMN=VALUE,...",
        help="The values that a column may have, such as status=new,paid; nulls pass. Repeatable.",
    ),
]
FreshnessOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=AGE",
        help="The greatest age of the newest time in a column, such as 'ordered_at=1 d'. "
        "Repeatable.",
    ),
]
ConditionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--condition",
        metavar="SQL",
        help="A condition for all rows, such as 'amount >= 0'; nulls pass. Repeatable.",
    ),
]
WarnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--warn-only",
        metavar="CHECK",
        help="A check that only warns: its kind, such as unique or rows, or its name, such as "
        "'not_null(note)'. Repeatable.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``check`` to the program."""
    app.command()(check)


def check(
    context: typer.Context,
    table: TableArgument,
    staged: StagedOption = None,
    where: WhereOption = None,
    min_rows: MinRowsOption = None,
    max_rows: MaxRowsOption = None,
    not_null: NotNullOption = None,
    unique: UniqueOption = None,
    accepted: AcceptedOption = None,
    freshness: FreshnessOption = None,
    conditions: ConditionOption = None,
    warn_only: WarnOption = None,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Check rows; print the number of bad rows with examples. The exit code is 1 if a check fails.

    An example: lake check shop.orders --min-rows 1 --not-null id --unique id
    """
    report = named_table_of_any_format(context, table).check(
        staged=staged,
        where=where,
        min_rows=min_rows,
        max_rows=max_rows,
        not_null=not_null or (),
        unique=[each.split(",") for each in unique or ()],
        accepted_values=_accepted(_pairs("--accepted-values", "status=new,paid", accepted)),
        freshness=named_once("column", _pairs("--freshness", "ordered_at=1 d", freshness)),
        conditions=conditions or (),
        warn_only=warn_only or (),
    )
    if as_json:
        print_json([report.to_dict()])
    else:
        _print(report)
    if report.failed:
        raise typer.Exit(EXIT_FAILED)


def _pairs(option: str, example: str, given: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for each in given or ():
        column, equals, value = each.partition("=")
        if not equals:
            raise InvalidRequestError(f"{option} must be like '{example}', got {each!r}")
        pairs.append((column, value))
    return pairs


def _accepted(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the accepted values by column; a column that is given twice has the values of both."""
    found: dict[str, list[str]] = {}
    for column, values in pairs:
        found.setdefault(column, []).extend(values.split(","))
    return found


def _print(report: CheckReport) -> None:
    typer.echo(f"{report.reason}\n")
    print_grid(
        [
            GridColumn("check", [each.name for each in report.checks]),
            GridColumn("outcome", [each.outcome for each in report.checks], styles=_STYLE),
            GridColumn("finding", [each.finding for each in report.checks]),
            GridColumn("what to do", [each.advice for each in report.checks]),
        ]
    )
