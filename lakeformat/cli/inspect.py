# SPDX-License-Identifier: Apache-2.0
"""``lake tables``, and a command for most system tables, such as ``lake files``.

For example, ``lake files shop.orders`` prints the rows of ``catalog.table("shop.orders$files")``. A
terminal shows the columns that ``metadata_commands.py`` declares, or ``iceberg_metadata.py`` for
Iceberg and Mixed tables. With --json all columns are printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import lakeformat as lake
from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.metadata_commands import METADATA_COMMANDS, MetadataCommand
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.warehouse import (
    WarehouseOption,
    existing_catalog_of_any_format,
    named_table_of_any_format,
)

__all__ = ["register"]

SnapshotOption = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Show this snapshot; for an Iceberg or Mixed table, give the snapshot's id. Default: "
        "the newest.",
    ),
]
TagOption = Annotated[
    str | None, typer.Option(metavar="TAG", help="Show the snapshot of this tag.")
]
LimitOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Show only the last N rows.")
]

_TABLE_COLUMNS = (Shown("database", "database"), Shown("table", "table"))


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(tables)
    for command in METADATA_COMMANDS:
        run = _of_snapshot(command) if command.of_snapshot else _of_table(command)
        app.command(command.name, help=command.meaning)(run)


def tables(
    context: typer.Context, warehouse: WarehouseOption = None, as_json: AsJson = False
) -> None:
    """List the tables of a warehouse."""
    catalog = existing_catalog_of_any_format(context)
    found = [
        (database, table)
        for database in catalog.list_databases()
        for table in catalog.list_tables(database)
    ]
    if as_json:
        print_json({"database": database, "table": table} for database, table in found)
        return
    values = {"database": [name for name, _ in found], "table": [name for _, name in found]}
    print_rows(_TABLE_COLUMNS, values, empty=_without_tables(catalog))


def _without_tables(catalog: lake.Catalog | lake.IcebergCatalog) -> str:
    kind, other = (
        ("Paimon", "Iceberg") if isinstance(catalog, lake.Catalog) else ("Iceberg", "Paimon")
    )
    advice = f"; if it has {other} tables, add --format {other.casefold()} before the command"
    return f"{catalog.location} has no {kind} table{advice}"


def _of_table(command: MetadataCommand) -> Callable[..., None]:
    def run(
        context: typer.Context,
        table: TableArgument,
        limit: LimitOption = None,
        warehouse: WarehouseOption = None,
        as_json: AsJson = False,
    ) -> None:
        _print(command, context, table, limit, as_json=as_json)

    return run


def _of_snapshot(command: MetadataCommand) -> Callable[..., None]:
    def run(
        context: typer.Context,
        table: TableArgument,
        snapshot: SnapshotOption = None,
        tag: TagOption = None,
        limit: LimitOption = None,
        warehouse: WarehouseOption = None,
        as_json: AsJson = False,
    ) -> None:
        _print(command, context, table, limit, as_json=as_json, snapshot=snapshot, tag=tag)

    return run


def _print(
    command: MetadataCommand,
    context: typer.Context,
    table: str,
    limit: int | None,
    *,
    as_json: bool,
    snapshot: int | None = None,
    tag: str | None = None,
) -> None:
    # Arrow takes a while to load, and `lake --help` does not need it.
    from lakeformat.cli.iceberg_metadata import print_iceberg_metadata
    from lakeformat.cli.plain_values import plain_columns, plain_rows

    opened = named_table_of_any_format(context, table)
    if not isinstance(opened, lake.Table):
        print_iceberg_metadata(
            opened, command.name, limit, as_json=as_json, snapshot=snapshot, tag=tag
        )
        return
    found = opened.system_table(command.table_name)
    columns = None if as_json else [shown.key for shown in command.columns]
    rows = found.scan(columns, snapshot=snapshot, tag=tag).to_arrow()
    if limit is not None:
        rows = rows.slice(max(rows.num_rows - limit, 0))
    if as_json:
        print_json(plain_rows(rows))
    else:
        empty = f"{table} has no {command.nothing}"
        print_rows(command.columns, plain_columns(rows), empty=empty)
