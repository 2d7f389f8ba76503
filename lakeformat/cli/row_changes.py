# SPDX-License-Identifier: Apache-2.0
"""``lake delete`` and ``lake update``: delete or change the rows that meet a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakeformat.cli.arguments import DryRun, TableArgument
from lakeformat.cli.compact import progressing
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.errors import InvalidRequestError
from lakeformat.tables.named_once import named_once
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import RowChangeReport

__all__ = ["register"]

WhereOption = Annotated[
    str,
    typer.Option(metavar="SQL", help="""The condition, such as "id = 7 AND note IS NULL"."""),
]
ReadSnapshotOption = Annotated[
    str | None,
    typer.Option(
        metavar="POSITION",
        help="Search the rows in this snapshot, such as 7, and skip rows whose key other commits "
        "have changed since. Needs transaction-order: see --conflict. Only for Paimon tables with "
        "a primary key.",
    ),
]
ConflictOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="In a Paimon table, transaction-order needs --read-snapshot, and skips rows whose key "
        "other commits have changed since that snapshot. Default: the table option "
        "write.conflict. A Mixed table always uses transaction-order. Not for Iceberg tables.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(delete)
    app.command()(update)


def delete(
    context: typer.Context,
    table: TableArgument,
    where: WhereOption,
    read_snapshot: ReadSnapshotOption = None,
    conflict: ConflictOption = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the rows that meet a condition.

    Earlier snapshots have these rows until they expire.

    An example: lake delete shop.orders --where "id = 7" --dry-run
    """
    found = named_table_of_any_format(context, table)
    order = found.given_arguments("delete", read_snapshot=read_snapshot, conflict=conflict)
    with progressing() as on_progress:
        report = found.delete(where, dry_run=dry_run, on_progress=on_progress, **order)
    _show(report, as_json=as_json)


def update(
    context: typer.Context,
    table: TableArgument,
    where: WhereOption,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="COLUMN=VALUE",
            help="A column and its new value, without SQL quotes, such as note=paid. Repeatable.",
        ),
    ] = None,
    set_null: Annotated[
        list[str] | None,
        typer.Option("--set-null", metavar="COLUMN", help="A column to set to NULL. Repeatable."),
    ] = None,
    read_snapshot: ReadSnapshotOption = None,
    conflict: ConflictOption = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Set columns to new values in all rows that meet a condition.

    An example: lake update shop.orders --where "id = 7" --set note=paid --set-null price
    """
    values = _values(set_ or [], set_null or [])
    found = named_table_of_any_format(context, table)
    order = found.given_arguments("update", read_snapshot=read_snapshot, conflict=conflict)
    with progressing() as on_progress:
        report = found.update(where, values, dry_run=dry_run, on_progress=on_progress, **order)
    _show(report, as_json=as_json)


def _values(given: list[str], nulls: list[str]) -> dict[str, str | None]:
    """Return the new value of each column as text, or None for NULL.

    A text is cast to the type of the column later, as in SQL.

    Raise ``InvalidRequestError`` if a column has two values, or if no column has a value.
    """
    pairs: list[tuple[str, str | None]] = [*map(_parted, given), *((name, None) for name in nulls)]
    found = named_once("column", pairs)
    if not found:
        raise InvalidRequestError(
            "no column has a new value: add --set COLUMN=VALUE, such as --set note=paid"
        )
    return found


def _parted(given: str) -> tuple[str, str]:
    column, equals, value = given.partition("=")
    if not equals:
        raise InvalidRequestError(
            f"--set {given!r} has no '=': write --set COLUMN=VALUE, such as --set note=paid"
        )
    return column.strip(), value


def _show(report: RowChangeReport, *, as_json: bool) -> None:
    if as_json:
        print_json([report.to_dict()])
        return
    typer.echo(report.reason)
    is_dry = report.dry_run
    parts = [
        f"{counted(number, 'file')} {done}"
        for number, done in (
            (report.files_marked, f"with rows {'to mark' if is_dry else 'marked'} as deleted"),
            (report.files_rewritten, "to rewrite" if is_dry else "rewritten"),
            (
                report.files_removed,
                f"{'to remove' if is_dry else 'removed'}, as no row is left",
            ),
        )
        if number
    ]
    if report.files_added:
        parts.append(f"{counted(report.files_added, 'file')} of {size(report.bytes_added)} added")
    if parts:
        typer.echo(f"{'; '.join(parts)}; {counted(report.files_read, 'file')} read")
