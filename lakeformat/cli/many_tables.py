# SPDX-License-Identifier: Apache-2.0
"""Runs a command on each table of a database, and prints the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from lakeformat.cli.copyable import worded
from lakeformat.cli.output import Shown, print_json, print_rows
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import existing_catalog, existing_catalog_of_any_format
from lakeformat.errors import NotFoundError
from lakeformat.tables.table_by_table import Reported, TableOutcome, table_by_table
from lakeformat.types.sentence import sentence

if TYPE_CHECKING:
    import lakeformat as lake
    from lakeformat.catalog.iceberg.catalog import IcebergCatalog

__all__ = [
    "NameArgument",
    "for_each_table",
    "is_database",
    "outcome_text",
    "show_outcomes",
    "tables_of",
]

EXIT_FAILED = 1
R = TypeVar("R", bound=Reported)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE|DATABASE",
        help="database.table, a branch as 'database.table$branch_dev', the table's directory, "
        "or a database (all its tables)",
    ),
]


def is_database(name: str) -> bool:
    """Return True if a name can only be the name of a database: it has neither a dot nor a
    slash.
    """
    return "." not in name and "/" not in name


def tables_of(catalog: lake.Catalog | IcebergCatalog, database: str) -> list[str]:
    """Return the tables of a database as ``database.table``.

    A missing database raises ``NotFoundError``.
    """
    try:
        return [f"{database}.{table}" for table in catalog.list_tables(database)]
    except NotFoundError as reason:
        raise NotFoundError(
            f"{sentence(reason)} To name a table, write its database, too: 'database.table'"
        ) from None


def for_each_table(
    context: typer.Context,
    database: str,
    act: Callable[[Any], R],
    *,
    without: Collection[str] = (),
    any_format: bool = False,
) -> list[TableOutcome[R]]:
    """Call ``act`` with each table of a database, and return the outcomes.

    The error of one table is part of its outcome. Tables in ``without`` are left out. A terminal
    shows the name of the current table. A catalog of Iceberg tables raises ``UnsupportedError``,
    unless ``any_format`` is True.
    """
    open_catalog = existing_catalog_of_any_format if any_format else existing_catalog
    catalog = open_catalog(context)
    names = [name for name in tables_of(catalog, database) if name not in without]
    with progress_line("looking for tables") as update:

        def began(name: str) -> None:
            if update is not None:
                update(description=f"{name}, {names.index(name) + 1} of {len(names)}")

        return [*table_by_table(names, lambda name: act(catalog.table(name)), began=began)]


def show_outcomes(
    context: typer.Context,
    database: str,
    outcomes: Sequence[TableOutcome[R]],
    columns: Sequence[Shown],
    cells: Callable[[R], Mapping[str, Any]],
    *,
    as_json: bool,
    heading: str = "what was done",
) -> None:
    """Print one line for each table: its report, its error, or the reason why it was skipped.

    ``cells`` returns a dict of the values of a report, by the keys of ``columns``. The value
    ``outcome`` of this dict is the text of the last column, and ``heading`` is the heading of that
    column. If a table failed, the exit code is 1.
    """
    if as_json:
        print_json(outcome.to_dict() for outcome in outcomes)
    else:
        rows = [
            {"table": each.table, "outcome": outcome_text(context, each)}
            if each.report is None
            else {**cells(each.report), "table": each.table}
            for each in outcomes
        ]
        shown = (Shown("table", "table"), *columns, Shown("outcome", heading))
        values = {column.key: [row.get(column.key) for row in rows] for column in shown}
        print_rows(shown, values, empty=f"{database} has no table")
    if any(each.error is not None for each in outcomes):
        raise typer.Exit(EXIT_FAILED)


def outcome_text(context: typer.Context, outcome: TableOutcome[Any]) -> str:
    """Return the class and message of a table's error, or the reason why the table was skipped.

    Python arguments and calls in the text are replaced by options and commands of ``lake``.
    """
    if outcome.skipped is not None:
        return f"skipped: {worded(context, outcome.skipped)}"
    return f"{type(outcome.error).__name__}: {worded(context, str(outcome.error))}"
