"""``lake rollback``: the rows of an earlier snapshot again."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeformat.cli.compact import TableArgument
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.tags import DryRunOption
from lakeformat.cli.warehouse import WarehouseOption, named_table

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add ``rollback`` to the program."""
    app.command()(rollback)


def rollback(
    context: typer.Context,
    table: TableArgument,
    snapshot: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Go back to a snapshot.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Go back to a tag.")] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Go back to the newest snapshot of '2024-01-31 10:00', in UTC."
        ),
    ] = None,
    watermark: Annotated[
        int | None,
        typer.Option(metavar="MILLIS", help="Go back to the last snapshot not past a watermark."),
    ] = None,
    cut_history: Annotated[
        bool,
        typer.Option(
            "--cut-history", help="Take newer snapshots out of history; nobody gets them back."
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --cut-history: also if tags are lost with it, or branches began there.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Go back to the rows of an earlier snapshot, by a new snapshot that has them.

    All snapshots stay, so that it can be taken back; with --cut-history newer ones go. An
    example: lake rollback shop.orders --tag v1 --dry-run
    """
    report = named_table(context, table).rollback(
        snapshot=snapshot,
        tag=tag,
        as_of=as_of,
        watermark=watermark,
        as_latest=not cut_history,
        force=force,
        dry_run=dry_run,
    )
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.reason)
