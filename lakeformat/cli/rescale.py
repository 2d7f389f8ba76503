# SPDX-License-Identifier: Apache-2.0
"""``lake rescale``: changes the number of buckets of a table's partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import DryRun, PartitionsWhereOption, TableArgument
from lakeformat.cli.copyable import worded
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.types.byte_size import size

if TYPE_CHECKING:
    from lakeformat import RescaleReport

__all__ = ["register"]

BucketOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of buckets. Default: the table option 'bucket'."),
]

_COLUMNS = (
    Shown("partition", "partition"),
    Shown("before", "buckets before"),
    Shown("after", "buckets"),
    Shown("rows", "rows"),
    Shown("bytes", "size", size),
    Shown("outcome", "outcome"),
)


def register(app: typer.Typer) -> None:
    """Add ``rescale`` to the program."""
    app.command()(rescale)


def rescale(
    context: typer.Context,
    table: TableArgument,
    bucket: BucketOption = None,
    where: PartitionsWhereOption = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite partitions with another number of buckets, each partition in its own commit.
    Only for Paimon tables.

    An example: lake rescale shop.orders --bucket 8 --where "dt >= '2024-01-31'" --dry-run
    """
    report = named_table(context, table).rescale(bucket=bucket, where=where, dry_run=dry_run)
    if as_json:
        print_json([report.to_dict()])
        return
    if report.partitions:
        print_rows(_COLUMNS, _values(report), empty="no partition")
    typer.echo(worded(context, report.reason))


def _values(report: RescaleReport) -> dict[str, list[Any]]:
    found = report.partitions
    return {
        "partition": [each.partition for each in found],
        "before": [each.buckets_before for each in found],
        "after": [each.buckets for each in found],
        "rows": [each.rows_in for each in found],
        "bytes": [each.bytes_in for each in found],
        "outcome": [each.outcome for each in found],
    }
