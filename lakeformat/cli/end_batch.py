# SPDX-License-Identifier: Apache-2.0
"""``lake end-batch``: ends a batch that hangs, so that another batch of the table can begin."""

from __future__ import annotations

from typing import Any

import typer

from lakeformat.cli.arguments import DryRun, TableArgument
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add ``end-batch`` to the program."""
    app.command("end-batch")(end_batch)


def end_batch(
    context: typer.Context,
    table: TableArgument,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """End the running batch of a Mixed table, such as a delete or an overwrite, so that another
    batch can begin. The commit of the ended batch then fails.

    That commit raises LockUnavailableError. This command is for a batch that hangs, or that still
    counts as running because the clock of its machine was wrong. If the process of a batch died,
    this command is not needed: after 60 seconds the next batch or compaction ends the dead batch.

    An example: lake end-batch /data/warehouse/shop/orders
    """
    found: Any = named_table_of_any_format(context, table)
    found.require("end_batch")
    report = found.end_batch(dry_run=dry_run)
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.reason)
