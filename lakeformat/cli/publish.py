# SPDX-License-Identifier: Apache-2.0
"""``lake publish``: Iceberg metadata of a Paimon table."""

from __future__ import annotations

import typer

from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.output import AsJson, print_report
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import WarehouseOption, named_table

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(publish)


def publish(
    context: typer.Context,
    table: TableArgument,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Bring the Iceberg metadata of a table to its newest snapshot, after other engines' commits.

    The table needs the option metadata.iceberg.storage, such as table-location. Commits of this
    program publish by themselves.

    An example: lake publish shop.orders
    """
    from lakeformat.publish.publish import publish_table

    found = named_table(context, table)
    with progress_line("publishing"):
        report = publish_table(found)
    print_report(report, as_json=as_json)
