"""``lake rollback``: the rows of an earlier snapshot again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.confirm import Yes, is_wanted
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.progress import progress_line
from lakeformat.cli.tags import DryRunOption
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat.paimon.rollback.rollback_report import RollbackReport

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
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Go back to the rows of an earlier snapshot, by a new snapshot that has them.

    All snapshots stay, so that it can be taken back; with --cut-history newer ones go, which is
    asked about first. An example: lake rollback shop.orders --tag v1 --dry-run
    """
    found = named_table(context, table)
    how: dict[str, Any] = {
        "snapshot": snapshot,
        "tag": tag,
        "as_of": as_of,
        "watermark": watermark,
        "as_latest": not cut_history,
        "force": force,
    }
    with progress_line("comparing snapshots"):
        report = found.rollback(**how, dry_run=dry_run or cut_history)
    if cut_history and not dry_run:
        what = "" if report.objection else _loses(report)
        if what and not is_wanted(f"{what} of {table}", yes=yes):
            return
        report = found.rollback(**how)
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.reason)


def _loses(report: RollbackReport) -> str:
    """What nobody gets back."""
    counts = (
        (report.removed_snapshots, "snapshot"),
        (report.removed_changelogs, "changelog"),
        (report.removed_tags, "tag"),
    )
    return " and ".join(counted(len(gone), what) for gone, what in counts if gone)
