# SPDX-License-Identifier: Apache-2.0
"""``lake missing-files``, ``missing-manifests`` and ``repair-hints``: repair wrong references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import DryRun, TableArgument
from lakeformat.cli.copyable import worded
from lakeformat.cli.many_tables import NameArgument, for_each_table, is_database, show_outcomes
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.types.byte_size import size

if TYPE_CHECKING:
    from lakeformat import MissingFilesReport

__all__ = ["register"]

EXIT_FAILED = 1
_SHOWN_FILES = 20

_FILES = (
    Shown("partition", "partition"),
    Shown("bucket", "bucket"),
    Shown("rows", "rows"),
    Shown("bytes", "size", size),
    Shown("bytes_left", "left", size),
    Shown("path", "file"),
)
_TABLES = (
    Shown("checked_files", "files"),
    Shown("missing_files", "lost"),
    Shown("missing_rows", "rows"),
    Shown("missing_bytes", "size", size),
)
_HINTS = (
    Shown("path", "hint"),
    Shown("before", "before"),
    Shown("after", "correct"),
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("missing-files")(missing_files)
    app.command("missing-manifests")(missing_manifests)
    app.command("repair-hints")(repair_hints)


def missing_files(
    context: typer.Context,
    name: NameArgument,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove/--dry-run", help="Remove these files from the table, or only list them."
        ),
    ] = False,
    max_share: Annotated[
        float,
        typer.Option(
            metavar="PART",
            help="Refuse to remove more than this share of the table's files.",
        ),
    ] = 0.5,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Find data files of the newest snapshot that are missing or truncated. Only for Paimon tables.

    With --remove the table no longer references these files,
    so it can be read again; their rows are lost. In a table with a primary key, earlier rows that
    these files deleted or replaced appear again. Without --remove nothing changes, and the exit
    code is 1 if such a file is found.

    An example: lake missing-files shop.orders
    """
    how: dict[str, Any] = {"dry_run": not remove, "max_share": max_share}
    if is_database(name):
        outcomes = for_each_table(context, name, lambda each: each.remove_missing_files(**how))
        reports = [each.report for each in outcomes if each.report is not None]
        for report in reports:
            _warn(context, report.objection)
        show_outcomes(context, name, outcomes, _TABLES, _cells, as_json=as_json)
    else:
        table = named_table(context, name)
        with progress_line("looking for data files"):
            reports = [table.remove_missing_files(**how)]
        _warn(context, reports[0].objection)
        _show(reports[0], as_json=as_json)
    if any(report.missing_files for report in reports) and not remove:
        raise typer.Exit(EXIT_FAILED)


def _warn(context: typer.Context, objection: str | None) -> None:
    if objection is not None:
        why = worded(context, objection)
        typer.secho(f"--remove would be refused: {why}", fg="red", bold=True, err=True)


def _show(report: MissingFilesReport, *, as_json: bool) -> None:
    if as_json:
        print_json([report.to_dict()])
        return
    files = report.files[:_SHOWN_FILES]
    if files:
        columns = {each.key: [getattr(file, each.key) for file in files] for each in _FILES}
        print_rows(_FILES, columns, empty="")
        if left_out := report.missing_files - len(files):
            typer.echo(f"and {left_out:,} more")
        typer.echo()
    typer.echo(_sentence(report))


def _cells(report: MissingFilesReport) -> dict[str, Any]:
    return {**report.to_dict(), "outcome": _sentence(report)}


def _sentence(report: MissingFilesReport) -> str:
    return report.reason.replace("dry_run=False", "--remove")


def missing_manifests(
    context: typer.Context,
    table: TableArgument,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove/--dry-run", help="Remove these manifests from the table, or only list them."
        ),
    ] = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Find missing manifests of the newest snapshot. Only for Paimon tables.

    While one is missing, reads fail. With --remove the files of the remaining manifests can be read
    again; the rows of the missing manifests are lost. In a table with a primary key, earlier rows
    that the lost rows deleted or replaced appear again. Instead of --remove, you can run
    `lake rollback --cut-history` to an intact snapshot or tag; this deletes all newer snapshots.
    Without --remove nothing changes, and the exit code is 1 if a manifest is missing.

    An example: lake missing-manifests shop.orders
    """
    found = named_table(context, table)
    with progress_line("looking for manifests"):
        report = found.remove_missing_manifests(dry_run=not remove)
    _warn(context, report.objection)
    if as_json:
        print_json([report.to_dict()])
    else:
        for name in report.missing_manifests[:_SHOWN_FILES]:
            typer.echo(name)
        typer.echo(report.reason.replace("dry_run=False", "--remove"))
    if report.missing_manifests and not remove:
        raise typer.Exit(EXIT_FAILED)


def repair_hints(
    context: typer.Context,
    table: TableArgument,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Correct the files EARLIEST and LATEST, which name the first and the last snapshot.
    Only for Paimon tables.

    The files of branches are corrected, too.

    Other programs trust these hints: a wrong EARLIEST hides old snapshots from them, and a LATEST
    that is too high names a snapshot that does not exist.

    An example: lake repair-hints shop.orders
    """
    report = named_table(context, table).repair(dry_run=dry_run)
    if as_json:
        print_json([report.to_dict()])
        return
    columns = {each.key: [getattr(hint, each.key) for hint in report.changes] for each in _HINTS}
    if report.changes:
        print_rows(_HINTS, columns, empty="")
    typer.echo(report.reason)
    for gap in report.gaps:
        typer.echo(f"missing: {gap}")
