# SPDX-License-Identifier: Apache-2.0
"""``lake partition``: expires, drops and marks partitions."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import DryRun, TableArgument
from lakeformat.cli.confirm import Yes, plan_is_wanted
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.tables.named_once import named_once
from lakeformat.tables.position import MAIN_BRANCH
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakeformat import LivePartition

__all__ = ["register"]

SpecsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PARTITION", help="Values of a partition, such as dt=2024-01-31,h=1. Repeatable."
    ),
]
OlderThanOption = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="TIME|AGE",
        help="Minimum age, such as '30 d', or a time in UTC such as '2024-01-31'. Default: the "
        "table option 'partition.expiration-time'; required if it is not set.",
    ),
]
StrategyOption = Annotated[
    str | None,
    typer.Option(
        metavar="STRATEGY",
        help="The source of a partition's time: values-time reads it from the partition's values; "
        "update-time takes the time of the partition's newest file. Default: the table option "
        "'partition.expiration-strategy' (values-time).",
    ),
]
PatternOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="With values-time: the time as text, built from the partition's values, such as "
        "'$dt $hour:00:00'. Default: the table option 'partition.timestamp-pattern', or the first "
        "partition column.",
    ),
]
FormatterOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Format of the time that --pattern gives, such as 'yyyyMMdd'. Default: the table "
        "option 'partition.timestamp-formatter'; if it is not set, both 'yyyy-MM-dd HH:mm:ss' and "
        "'yyyy-MM-dd' are accepted.",
    ),
]
MaxOption = Annotated[
    int | None,
    typer.Option(
        "--max",
        metavar="NUMBER",
        help="Expire at most this many partitions. Default: the table option "
        "'partition.expiration-max-num' (100).",
    ),
]
BatchOption = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        metavar="NUMBER",
        help="Expire at most this many partitions in one commit. Default: the table option "
        "'partition.expiration-batch-size', or all.",
    ),
]
ActionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--action",
        metavar="NAME",
        help="Kind of mark: success-file or done-partition. Repeatable. Default: the table option "
        "'partition.mark-done-action' (success-file).",
    ),
]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Also mark partitions without rows.")
]

_PARTITIONS = (
    Shown("partition", "partition"),
    Shown("rows", "rows"),
    Shown("files", "files"),
    Shown("bytes", "size", size),
    Shown("reason", "reason"),
)
partitions = typer.Typer(
    no_args_is_help=True, help="Expire, drop or mark partitions; `lake partitions` lists them."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    partitions.command()(expire)
    partitions.command()(drop)
    partitions.command()(done)
    app.add_typer(partitions, name="partition")


def expire(
    context: typer.Context,
    table: TableArgument,
    older_than: OlderThanOption = None,
    strategy: StrategyOption = None,
    pattern: PatternOption = None,
    formatter: FormatterOption = None,
    most: MaxOption = None,
    batch_size: BatchOption = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the rows of partitions that are too old. Only for Paimon tables.

    The files are kept until `lake expire` deletes the earlier snapshots that need them. Check
    first: lake partition expire shop.orders --older-than '90 d' --dry-run
    """
    found = named_table(context, table)
    with progress_line("looking for partitions that are too old"):
        report = found.expire_partitions(
            expiration_time=older_than,
            strategy=strategy,
            timestamp_pattern=pattern,
            timestamp_formatter=formatter,
            max_num=most,
            batch_size=batch_size,
            dry_run=dry_run,
        )
    if as_json:
        print_json([report.to_dict()])
        return
    if report.expired:
        _print(
            [each.partition for each in report.expired], [each.reason for each in report.expired]
        )
    for path, why in report.unknown:
        typer.echo(f"kept {path}: {why}")
    typer.echo(report.reason)


def drop(
    context: typer.Context,
    table: TableArgument,
    partition: SpecsArgument,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Ignore partitions that do not exist.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the rows of partitions, after confirmation. Only for Paimon tables.

    Name the partitions by values of some or all partition columns.

    An example: lake partition drop shop.orders dt=2024-01-31 dt=2024-02-01,h=1 --dry-run
    """
    found, specs = named_table(context, table), [_spec(text) for text in partition]
    plan = found.plan_drop_partitions(specs)
    if plan.missing and not missing_ok:
        raise NotFoundError(
            f"{table} has no partition {_spelled(plan.missing[0])}: `lake partitions "
            f"{shlex.quote(table)}` lists all partitions; --missing-ok ignores missing ones"
        )
    report = None
    if plan.partitions and not dry_run:
        if not as_json:
            _print(plan.partitions, ["named"] * len(plan.partitions))
        what = f"{counted(len(plan.partitions), 'partition')} of {table}"
        if not plan_is_wanted(
            what,
            plan.partitions,
            lambda: found.plan_drop_partitions(specs).partitions,
            yes=yes,
            undo="`lake rollback`, until snapshots expire",
        ):
            return
        with progress_line("dropping partitions"):
            report = found.drop_partitions(specs)
    if as_json:
        members = plan.to_dict()
        print_json([{**members, "commit": None if report is None else report.to_dict()}])
        return
    if not plan.partitions:
        typer.echo("no partition has these values; nothing was dropped")
        return
    if report is None:
        _print(plan.partitions, ["named"] * len(plan.partitions))
    typer.echo("these would be dropped" if report is None else f"dropped: {report.reason}")


def done(
    context: typer.Context,
    table: TableArgument,
    partition: SpecsArgument,
    action: ActionOption = None,
    allow_empty: AllowEmpty = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Mark partitions as done, for jobs that wait until a partition is complete. Only for Paimon
    tables.

    Name each partition by its values of all partition columns.

    An example: lake partition done shop.orders dt=2024-01-31
    """
    opened = named_table(context, table)
    if dry_run and opened.branch != MAIN_BRANCH:  # the library reads the marks of main then
        raise InvalidRequestError(
            f"partitions can only be marked as done from main, but {table!r} names branch "
            f"{opened.branch!r}. Get the rows into main, then name the table without a branch"
        )
    report = opened.mark_partitions_done(
        [_spec(text) for text in partition],
        actions=action or None,
        allow_empty=allow_empty,
        dry_run=dry_run,
    )
    if as_json:
        print_json([report.to_dict()])
        return
    for each in report.partitions:
        again = ", already marked" if each.repeated else ""
        typer.echo(f"{each.partition}{again}: {', '.join(each.marks)}")
    typer.echo(report.reason)


def _print(found: Sequence[LivePartition], reasons: Sequence[str]) -> None:
    values: dict[str, list[Any]] = {
        "partition": [each.path for each in found],
        "rows": [each.rows for each in found],
        "files": [each.files for each in found],
        "bytes": [each.bytes for each in found],
        "reason": list(reasons),
    }
    print_rows(_PARTITIONS, values, empty="no partition")


def _spelled(spec: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in spec.items())


def _spec(text: str) -> dict[str, str]:
    """Return the values of ``dt=2024-01-31,h=1`` by partition column.

    Raise ``InvalidRequestError`` for a part without ``=``, or without a column before it, and for a
    column that is named twice.
    """
    pairs = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InvalidRequestError(
                f"partition {text!r} is not a list of COLUMN=VALUE: write it with commas, such as "
                "dt=2024-01-31,h=1"
            )
        pairs.append((key.strip(), value))
    return named_once("column", pairs, "name it once, and write each partition as its own argument")
