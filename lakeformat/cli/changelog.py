# SPDX-License-Identifier: Apache-2.0
"""``lake changelog``: compacts files whose changes are not in the changelog of the table yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lakeformat.cli.arguments import PartitionsWhereOption, TableArgument
from lakeformat.cli.compact import (
    ExecutorOption,
    IdleOption,
    YesOption,
    compacted,
    goes_on_beside,
    progressing,
)
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import CompactReport

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add ``changelog`` to the program."""
    app.command()(changelog)


def changelog(
    context: typer.Context,
    table: TableArgument,
    where: PartitionsWhereOption = None,
    idle: IdleOption = None,
    executor: ExecutorOption = "threads",
    yes: YesOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Add the newest writes to the changelog of a table, by a compaction. Only for Paimon
    tables with 'changelog-producer' = 'lookup' or 'full-compaction'.

    An example: lake changelog shop.orders --where "dt >= '2024-01-31'"
    """
    found = named_table(context, table)
    strategy = found.options.strategy_of_changelog()
    if not goes_on_beside(context, [found.other_compactor()], yes=yes):
        return
    with progressing() as on_progress:
        report, failure = compacted(
            found,
            strategy=strategy,
            where=where,
            idle=idle,
            executor=executor,
            on_progress=on_progress,
        )
    if as_json:
        print_json([report.to_dict()])
    else:
        _print(report)
    if failure is not None:
        raise failure


def _print(report: CompactReport) -> None:
    typer.echo(_sentence(report))
    for each in report.buckets:
        place = f"partition {each.partition}, " if each.partition else ""
        rows = counted(each.changelog_rows, "row") if each.outcome == "compacted" else each.outcome
        typer.echo(f"  {place}bucket {each.bucket}: {rows}")


def _sentence(report: CompactReport) -> str:
    if not report.snapshot_ids:
        return report.reason
    numbers = ", ".join(map(str, report.snapshot_ids))
    return f"{counted(report.changelog_rows, 'row')} of changelog in snapshot {numbers}"
