"""``lake tables`` and ``lake snapshots``: what is there."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeformat.cli.output import AsJson, print_rows, timestamp
from lakeformat.cli.warehouse import WarehouseOption, named_catalog

__all__ = ["register"]

_TABLE_COLUMNS = {"database": "database", "table": "table"}
_SNAPSHOT_COLUMNS = {
    "id": "id",
    "time": "time",
    "commit_kind": "kind",
    "delta_record_count": "added rows",
    "total_record_count": "total rows",
    "commit_user": "commit user",
    "commit_identifier": "identifier",
}


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(tables)
    app.command()(snapshots)


def tables(
    context: typer.Context, warehouse: WarehouseOption = None, as_json: AsJson = False
) -> None:
    """List the tables of a warehouse."""
    catalog = named_catalog(context, warehouse)
    rows = [
        {"database": database, "table": table}
        for database in catalog.list_databases()
        for table in catalog.list_tables(database)
    ]
    empty = f"{catalog.location} holds no table"
    print_rows(_TABLE_COLUMNS, rows, as_json=as_json, empty=empty)


def snapshots(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="database.table")],
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """List the snapshots of a table, oldest first."""
    found = named_catalog(context, warehouse).table(table).snapshots()
    rows = [{**snapshot.to_dict(), "time": timestamp(snapshot.time_millis)} for snapshot in found]
    print_rows(_SNAPSHOT_COLUMNS, rows, as_json=as_json, empty=f"{table} has no snapshot yet")
