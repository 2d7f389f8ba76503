# SPDX-License-Identifier: Apache-2.0
"""``lake plan``: shows the optimizing that Amoro's rules require in a Mixed table."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import TableArgument, time_of
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.errors import UnsupportedError
from lakeformat.types.byte_size import size

if TYPE_CHECKING:
    from lakeformat.mixed.optimizing.plan import OptimizingPlan

__all__ = ["register"]

_COLUMNS = (
    Shown("partition", "partition"),
    Shown("due", "due"),
    Shown("reason", "reason"),
    Shown("fragments", "fragments"),
    Shown("rewritten", "to rewrite"),
    Shown("undersized", "undersized"),
    Shown("tasks", "tasks"),
    Shown("cost", "cost", size),
)


def register(app: typer.Typer) -> None:
    """Add ``plan`` to the program."""
    app.command()(plan)


def plan(
    context: typer.Context,
    table: TableArgument,
    last_minor: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time of the last minor optimizing, such as '2024-01-31 10:00', in UTC. "
            "Default: the time of the last optimizing of any kind.",
        ),
    ] = None,
    last_full: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time of the last full optimizing, such as '2024-01-31 10:00', in UTC. "
            "Default: the time of the last optimizing of any kind.",
        ),
    ] = None,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the optimizing (compaction) that Amoro's rules require in a Mixed table.

    --json also shows the tasks, with the files of each.

    An example: lake plan /data/warehouse/shop/orders
    """
    found: Any = named_table_of_any_format(context, table)
    if "plan_optimizing" not in found.operations:
        raise UnsupportedError(
            f"{found.location} has no optimizing plan, because it is not a Mixed table: "
            f"`lake compact {shlex.quote(table)} --dry-run` shows the plan of a compaction"
        )
    planned = found.plan_optimizing(last_minor=time_of(last_minor), last_full=time_of(last_full))
    if as_json:
        print_json([planned.to_dict()])
        return
    print_rows(_COLUMNS, _values(planned), empty="the table has no files")
    typer.echo(planned.sentence)


def _values(planned: OptimizingPlan) -> dict[str, list[Any]]:
    found = planned.partitions
    decisions = [each.decision for each in found]
    return {
        "partition": [each.partition or "all" for each in found],
        "due": [each.type.value if each.necessary else "no" for each in decisions],
        "reason": [each.reason for each in decisions],
        "fragments": [each.fragments for each in decisions],
        "rewritten": [each.rewritten for each in decisions],
        "undersized": [each.undersized for each in decisions],
        "tasks": [len(each.tasks) for each in found],
        "cost": [each.cost for each in decisions],
    }
