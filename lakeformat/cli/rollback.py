# SPDX-License-Identifier: Apache-2.0
"""``lake rollback``: restores the rows of an earlier snapshot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from lakeformat.cli.arguments import DryRun, TableArgument, time_of
from lakeformat.cli.confirm import plan_is_wanted
from lakeformat.cli.copyable import worded
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import RollbackReport

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add ``rollback`` to the program."""
    app.command()(rollback)


def rollback(
    context: typer.Context,
    table: TableArgument,
    snapshot: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Restore this snapshot: its number, or in an Iceberg table its id.",
        ),
    ] = None,
    tag: Annotated[
        str | None, typer.Option(metavar="TAG", help="Restore the snapshot of this tag.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Restore the snapshot that was the newest at this time, such as "
            "'2024-01-31 10:00', in UTC.",
        ),
    ] = None,
    watermark: Annotated[
        int | None,
        typer.Option(
            metavar="MILLIS",
            help="Restore the last snapshot whose watermark, in epoch milliseconds, is at most "
            "this. Only for Paimon tables.",
        ),
    ] = None,
    cut_history: Annotated[
        bool,
        typer.Option(
            "--cut-history",
            help="Delete the newer snapshots for good, after confirmation. Only for Paimon tables.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --cut-history: continue even if this deletes tags of the newer snapshots, "
            "or if a branch began at one of these snapshots.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="With --cut-history: delete without asking; needed in scripts."
        ),
    ] = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Restore the rows of an earlier snapshot. Not for Mixed tables.

    A Paimon table gets a new snapshot with these rows, and all snapshots are kept. To undo the
    rollback, roll back to the snapshot that was the newest before. With --cut-history the newer
    snapshots are deleted, after confirmation; this cannot be undone.

    In an Iceberg table, main or the branch that you named moves back to the earlier snapshot. The
    newer snapshots are kept until they expire. To undo a rollback of main, create a branch from the
    snapshot that was the newest, and run `lake branch fast-forward`.

    An example: lake rollback shop.orders --tag v1 --dry-run
    """
    found = named_table_of_any_format(context, table)
    roll_back = partial(
        found.rollback,
        snapshot=snapshot,
        tag=tag,
        as_of=time_of(as_of),
        watermark=watermark,
        as_latest=not cut_history,
        force=force,
    )
    with progress_line("comparing snapshots"):
        report = roll_back(dry_run=dry_run or cut_history)
    if cut_history and not dry_run:
        if not _may_delete(report, partial(roll_back, dry_run=True), table, yes=yes):
            return
        report = roll_back()
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(worded(context, report.reason))


def _may_delete(
    report: RollbackReport, plan: Callable[[], RollbackReport], table: str, *, yes: bool
) -> bool:
    """Return True if the user agrees to the deletions of the rollback.

    Return True without asking if ``yes`` is True, or if the rollback deletes nothing. If ``report``
    has an objection, also return True without asking, because the rollback will raise an error and
    delete nothing. If the user agrees, but a new ``plan`` differs from ``report``, raise
    ``CommitConflictError``.
    """
    what = "" if report.objection else _loses(report)
    return not what or plan_is_wanted(f"{what} of {table}", report, plan, yes=yes)


def _loses(report: RollbackReport) -> str:
    counts = (
        (report.removed_snapshots, "snapshot"),
        (report.removed_changelogs, "changelog"),
        (report.removed_tags, "tag"),
    )
    return " and ".join(counted(len(gone), what) for gone, what in counts if gone)
