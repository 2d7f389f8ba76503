"""``--warehouse``: before or after the command, or in LAKE_WAREHOUSE; ./warehouse when absent."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeformat.catalog import BRANCH_PREFIX, Catalog, open_catalog
from lakeformat.errors import NotFoundError
from lakeformat.layout import MAIN_BRANCH
from lakeformat.storage import open_storage
from lakeformat.table import Table, open_table

__all__ = ["WarehouseOption", "existing_catalog", "named_catalog", "named_table"]

DEFAULT_WAREHOUSE = "warehouse"

WarehouseOption = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        "-w",
        envvar="LAKE_WAREHOUSE",
        help="Path or URI of the warehouse; ./warehouse when nothing is said.",
    ),
]


def named_catalog(context: typer.Context, warehouse: str | None) -> Catalog:
    """The catalog of the option given to the command, or else to ``lake`` itself."""
    named_before = context.find_root().params.get("warehouse")
    return open_catalog(warehouse or named_before or DEFAULT_WAREHOUSE)


def existing_catalog(context: typer.Context, warehouse: str | None) -> Catalog:
    """The same, or an error where nothing has ever been made there."""
    catalog = named_catalog(context, warehouse)
    storage, root = open_storage(catalog.location)
    if not storage.directory_exists(root):
        state = "is a file" if storage.exists(root) else "does not exist"
        raise NotFoundError(f"warehouse {catalog.location} {state}: check --warehouse")
    return catalog


def named_table(context: typer.Context, warehouse: str | None, name: str) -> Table:
    """The table of a name in the warehouse or, where there is a slash in it, of a directory."""
    if "/" not in name:
        return named_catalog(context, warehouse).table(name)
    location, _, branch = name.partition(f"${BRANCH_PREFIX}")
    return open_table(location, branch=branch or MAIN_BRANCH)
