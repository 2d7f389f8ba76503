"""``lake tables``: what is there. What a table consists of is in ``table_metadata.py``."""

from __future__ import annotations

import typer

from lakeformat.cli.output import AsJson, Shown, print_rows
from lakeformat.cli.warehouse import WarehouseOption, existing_catalog

__all__ = ["register"]

_COLUMNS = (Shown("database", "database"), Shown("table", "table"))


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(tables)


def tables(
    context: typer.Context, warehouse: WarehouseOption = None, as_json: AsJson = False
) -> None:
    """List the tables of a warehouse."""
    catalog = existing_catalog(context, warehouse)
    rows = [
        {"database": database, "table": table}
        for database in catalog.list_databases()
        for table in catalog.list_tables(database)
    ]
    empty = f"{catalog.location} holds no table"
    print_rows(_COLUMNS, rows, as_json=as_json, empty=empty)
