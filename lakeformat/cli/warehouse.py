"""``--warehouse``: before or after the command, or in LAKE_WAREHOUSE; ./warehouse when absent."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeformat.catalog import Catalog, open_catalog

__all__ = ["WarehouseOption", "named_catalog"]

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
