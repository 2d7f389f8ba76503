# SPDX-License-Identifier: Apache-2.0
"""``lake consumer``: readers of changes, and the snapshots kept for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import DryRun, TableArgument
from lakeformat.cli.confirm import Yes, is_wanted
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.errors import InvalidRequestError
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import ConsumerReport
    from lakeformat.tables.consumers.table_consumers import AnyTableConsumers

__all__ = ["register"]

ConsumerArgument = Annotated[
    str, typer.Argument(metavar="CONSUMER", help="The name of the consumer.")
]
NextOption = Annotated[
    int,
    typer.Option(
        "--next",
        metavar="SNAPSHOT",
        help="The number of the snapshot that the consumer reads next. For an Iceberg table, "
        "give the snapshot's sequence number; for a Mixed table, the sequence number of a snapshot "
        "of the change store.",
    ),
]
MaybeNextOption = Annotated[
    int | None,
    typer.Option(
        "--next",
        metavar="SNAPSHOT",
        help="The snapshot that the consumer reads next, numbered as for `lake consumer set`. "
        "Default: delete the consumer.",
    ),
]

_LISTED = (
    Shown("id", "consumer"),
    Shown("next_snapshot", "next snapshot"),
    Shown("behind", "behind"),
    Shown("progress", "progress"),
)

_consumer = typer.Typer(
    no_args_is_help=True, help="Consumers: readers of changes; unread snapshots are kept for them."
)


def register(app: typer.Typer) -> None:
    """Add ``consumer`` and its commands to the program."""
    app.add_typer(_consumer, name="consumer")


@_consumer.command("list")
def list_consumers(
    context: typer.Context,
    table: TableArgument,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """List the consumers of a table, and how many snapshots each is behind.

    An example: lake consumer list shop.orders
    """
    # Arrow takes a while to load, and `lake --help` does not need it.
    from lakeformat.tables.moment import moment_text

    states = named_table_of_any_format(context, table).consumers.list()
    if as_json:
        print_json(state.to_dict() for state in states)
        return
    values: dict[str, list[Any]] = {
        "id": [state.id for state in states],
        "next_snapshot": [state.next_snapshot for state in states],
        "behind": ["fell behind" if state.is_stale else f"{state.behind}" for state in states],
        "progress": [moment_text(state.modified_millis) for state in states],
    }
    print_rows(_LISTED, values, empty="the table has no consumer")


@_consumer.command("set")
def set_consumer(
    context: typer.Context,
    table: TableArgument,
    consumer: ConsumerArgument,
    next_snapshot: NextOption,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Set the snapshot that a consumer reads next. A new name creates a consumer.

    This snapshot and all later ones are kept for the consumer.

    An example: lake consumer set shop.orders job --next 5
    """
    consumers = named_table_of_any_format(context, table).consumers
    consumers.set(consumer, next_snapshot=next_snapshot, dry_run=dry_run)
    _print_next(consumers, consumer, next_snapshot, dry_run=dry_run, as_json=as_json)


@_consumer.command("reset")
def reset_consumer(
    context: typer.Context,
    table: TableArgument,
    consumer: ConsumerArgument,
    next_snapshot: MaybeNextOption = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Move an existing consumer to another snapshot; without --next, delete the consumer.

    An example: lake consumer reset shop.orders job
    """
    consumers = named_table_of_any_format(context, table).consumers
    consumers.reset(consumer, next_snapshot=next_snapshot, dry_run=dry_run)
    _print_next(consumers, consumer, next_snapshot, dry_run=dry_run, as_json=as_json)


@_consumer.command("expire")
def expire_consumers(
    context: typer.Context,
    table: TableArgument,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="TIME|AGE",
            help="Delete consumers without progress since '2024-01-31 10:00', in UTC, or for "
            "'7 d'.",
        ),
    ],
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the consumers that have made no progress for some time.

    An example: lake consumer expire shop.orders --older-than '2024-01-31 10:00'
    """
    _print(
        named_table_of_any_format(context, table).consumers.expire(
            older_than=older_than, dry_run=dry_run
        ),
        as_json=as_json,
    )


@_consumer.command("clear")
def clear_consumers(
    context: typer.Context,
    table: TableArgument,
    including: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only consumers whose whole name matches.")
    ] = None,
    excluding: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Keep consumers whose whole name matches.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the consumers that --including and --excluding select. Without these two options,
    delete all consumers, after confirmation.

    An example: lake consumer clear shop.orders --including 'test-.*' --dry-run
    """
    if "" in (including, excluding):
        raise InvalidRequestError(
            "--including and --excluding need a name or a pattern, got an empty text: nothing was "
            "deleted. Give a pattern such as 'test-.*', or leave the option out"
        )
    consumers = named_table_of_any_format(context, table).consumers
    named = including is not None or excluding is not None
    if not (named or dry_run or is_wanted(f"all consumers of {table}", yes=yes)):
        return
    report = consumers.clear(including=including or ".*", excluding=excluding, dry_run=dry_run)
    _print(report, as_json=as_json)


def _print_next(
    consumers: AnyTableConsumers[Any],
    consumer: str,
    number: int | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    if as_json:
        print_json([{"consumer_id": consumer, "next_snapshot_id": number, "dry_run": dry_run}])
    elif number is None:
        typer.echo(f"{'would delete' if dry_run else 'deleted'} consumer {consumer!r}")
    else:
        typer.echo(consumers.describe_next(consumer, number, dry_run=dry_run))


def _print(report: ConsumerReport, *, as_json: bool) -> None:
    if as_json:
        print_json([report.to_dict()])
        return
    names = ", ".join(report.removed) or "no consumer"
    verb = "would delete" if report.dry_run else "deleted"
    typer.echo(f"{verb} {names}; kept {counted(len(report.kept), 'consumer')}")
