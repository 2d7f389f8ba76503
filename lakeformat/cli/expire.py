# SPDX-License-Identifier: Apache-2.0
"""``lake expire``: deletes old snapshots, and the files that only they need."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import DryRun, SaveOption
from lakeformat.cli.many_tables import NameArgument, for_each_table, is_database, show_outcomes
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.progress import counting
from lakeformat.cli.save import saving
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.errors import LakeError
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    import lakeformat as lake
    from lakeformat import ExpireReport, IcebergExpireReport, Removal
    from lakeformat.tables.table_by_table import TableOutcome

__all__ = ["register"]

RetainMaxOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Keep at most the N newest snapshots. If the table option snapshot.num-retained.min "
        "(10 by default) is larger, also give --retain-min. Default: the table option "
        "snapshot.num-retained.max (no limit). Only for Paimon tables.",
    ),
]
RetainMinOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Keep at least the N newest snapshots, of any age. Default: the table option "
        "snapshot.num-retained.min (10); in Iceberg tables the property "
        "history.expire.min-snapshots-to-keep (1), in Mixed tables snapshot.keep.min-count (1).",
    ),
]
OlderThanOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|AGE",
        help="Expire snapshots older than this age, such as '7 d', or than this time in UTC, such "
        "as '2024-01-31 10:00'. In Paimon tables the age of a snapshot counts from the commit of "
        "the next snapshot. "
        "--retain-min and --retain-max take precedence. Default: the table option "
        "snapshot.time-retained (1 h); in Iceberg tables the property "
        "history.expire.max-snapshot-age-ms (5 d); in Mixed tables snapshot.keep.duration (12 h) "
        "for the base store and change.data.ttl.minutes (7 d) for the change store.",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Expire at most N snapshots, and at most N changelogs. Default: the table option "
        "snapshot.expire.limit (50). Only for Paimon tables.",
    ),
]

_SHOWN_FILES = 1_000

_FILES = (
    Shown("kind", "kind"),
    Shown("size", "size", size),
    Shown("path", "file"),
    Shown("reason", "why"),
)


_TABLES = (
    Shown("snapshots", "snapshots"),
    Shown("changelogs", "changelogs"),
    Shown("files", "files"),
    Shown("bytes", "size", size),
)


def register(app: typer.Typer) -> None:
    """Add ``expire`` to the program."""
    app.command()(expire)


def expire(
    context: typer.Context,
    name: NameArgument,
    retain_max: RetainMaxOption = None,
    retain_min: RetainMinOption = None,
    older_than: OlderThanOption = None,
    limit: LimitOption = None,
    dry_run: DryRun = False,
    save: SaveOption = None,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete old snapshots of a table, or of each table of a database, and files that only they
    need.

    Time travel and rollback to a deleted snapshot are no longer possible. The newest snapshot is
    always kept, and everything that a kept snapshot, a tag, a branch or a consumer needs. If an
    expiry of a Paimon table is interrupted, the next expiry deletes the rest. In an Iceberg or
    Mixed table, `lake orphans --remove` deletes the rest.

    For a database the output has one line for each table; --save FILE lists the files of all
    tables.

    An example: lake expire shop.orders --retain-max 20 --dry-run
    """
    how: dict[str, Any] = {
        "retain_max": retain_max,
        "retain_min": retain_min,
        "older_than": older_than,
        "limit": limit,
        "dry_run": dry_run,
    }
    with _saving(save) as keep:
        if is_database(name):
            outcomes = for_each_table(
                context,
                name,
                lambda table: table.expire_snapshots(**how, on_progress=keep),
                any_format=True,
            )
            try:
                show_outcomes(context, name, outcomes, _TABLES, _cells, as_json=as_json)
            finally:  # also after an error of one table: what the others need is shown
                if not as_json:
                    _print_stalled(outcomes)
            _require_complete(
                [(each.table, each.report) for each in outcomes if each.report is not None]
            )
        else:
            _expire_table(
                named_table_of_any_format(context, name), name, how, keep, as_json=as_json
            )


def _expire_table(
    table: lake.Table | lake.IcebergTable | lake.MixedTable,
    name: str,
    how: dict[str, Any],
    keep: Callable[[Removal], None],
    *,
    as_json: bool,
) -> None:
    dry_run, shown = how["dry_run"], list[Any]()
    unit = "files would be deleted" if dry_run else "files deleted"
    with counting("looking for expired snapshots", unit) as step:

        def on_progress(removal: Removal) -> None:
            keep(removal)
            if step is not None:
                step()
            if dry_run and (as_json or len(shown) < _SHOWN_FILES):
                shown.append(removal)

        report = table.expire_snapshots(**how, on_progress=on_progress)
    if as_json:
        files = {"removals": [each.to_dict() for each in shown]} if dry_run else {}
        print_json([{**report.to_dict(), **files}])
    else:
        _print(report, shown, name)
    _require_complete([(name, report)])


def _require_complete(reports: Sequence[tuple[str, ExpireReport | IcebergExpireReport]]) -> None:
    import lakeformat as lake

    failed = [(name, report) for name, report in reports if not report.is_complete]
    if failed:
        name, first = failed[0]
        count = counted(sum(report.deleted.failures for _, report in failed), "file")
        of_tables = name if len(failed) == 1 else f"{len(failed)} tables"
        table = shlex.quote(name) if len(failed) == 1 else "TABLE"
        rest = (
            f"`lake orphans {table} --remove` deletes them later"
            if isinstance(first, lake.IcebergExpireReport)
            else "run the command again to delete the rest"
        )
        raise LakeError(
            f"{count} of {of_tables} could not be deleted: {rest}. The first file is "
            f"{first.deleted.failed[0]}"
        )


def _cells(report: ExpireReport | IcebergExpireReport) -> dict[str, Any]:
    import lakeformat as lake

    return {
        "snapshots": len(report.snapshots),
        "changelogs": (
            None if isinstance(report, lake.IcebergExpireReport) else len(report.changelogs)
        ),
        "files": report.deleted.total,
        "bytes": report.deleted.bytes,
        "outcome": report.lines[-1],
    }


def _print(report: ExpireReport | IcebergExpireReport, shown: list[Removal], name: str) -> None:
    import lakeformat as lake

    if report.dry_run:
        rows: list[dict[str, Any]] = [each.to_dict() for each in shown]
        columns = {column.key: [row[column.key] for row in rows] for column in _FILES}
        print_rows(_FILES, columns, empty="no file would be deleted")
        if left_out := report.deleted.total - len(shown):
            typer.echo(f"and {left_out:,} more; --save FILE writes all of them")
    for line in report.lines:
        typer.echo(line)
    if not isinstance(report, lake.IcebergExpireReport):
        for line in report.advice(shlex.quote(name)):
            typer.echo(line)


def _print_stalled(outcomes: Sequence[TableOutcome[Any]]) -> None:
    """Print a line for each consumer that prevents further expiry, with advice."""
    import lakeformat as lake

    for each in outcomes:
        if isinstance(each.report, lake.ExpireReport):
            for line in each.report.advice(shlex.quote(each.table)):
                typer.echo(f"{each.table}: {line}")


@contextmanager
def _saving(path: Path | None) -> Iterator[Callable[[Removal], None]]:
    """Yield a function that writes each file of the expiry to ``path`` as a line of JSON.

    In a dry run these are the files that would be deleted. If ``path`` is None, the function does
    nothing.
    """
    if path is None:
        yield lambda removal: None
        return
    with saving(path) as save:
        yield save
