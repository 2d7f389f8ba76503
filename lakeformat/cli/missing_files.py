"""``lake missing-files`` and its siblings: what a table says is there, and is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.many_tables import NameArgument, for_each_table, is_database, show_outcomes
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.types.byte_size import size

if TYPE_CHECKING:
    from lakeformat.paimon.orphans.missing import MissingFilesReport

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
    Shown("before", "says"),
    Shown("after", "is"),
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
            "--remove/--dry-run", help="Take the files out of the table, or only say which."
        ),
    ] = False,
    max_share: Annotated[
        float,
        typer.Option(
            metavar="PART", help="Refuse if more than this part of the table's files is not whole."
        ),
    ] = 0.5,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Find data files a table has that are gone or cut short; without them it can be read again.

    The newest snapshot is looked at, and no older one. The rows of files that it finds are lost.
    Without --remove nothing is changed, and the exit code is 1 if there is such a file.
    An example: lake missing-files shop.orders
    """
    how: dict[str, Any] = {"dry_run": not remove, "max_share": max_share}
    if is_database(name):
        outcomes = for_each_table(context, name, lambda each: each.remove_missing_files(**how))
        reports = [each.report for each in outcomes if each.report is not None]
        for report in reports:
            _warn(report)
        show_outcomes(context, name, outcomes, _TABLES, _cells, as_json=as_json)
    else:
        table = named_table(context, name)
        with progress_line("looking for data files"):
            reports = [table.remove_missing_files(**how)]
        _warn(reports[0])
        _show(reports[0], as_json=as_json)
    if any(report.missing_files for report in reports) and not remove:
        raise typer.Exit(EXIT_FAILED)


def _warn(report: MissingFilesReport) -> None:
    if report.objection is not None:
        typer.secho(f"--remove would refuse: {report.objection}", fg="red", bold=True, err=True)


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
    typer.echo(_said(report))


def _cells(report: MissingFilesReport) -> dict[str, Any]:
    """One table in a line."""
    return {**report.to_dict(), "said": _said(report)}


def _said(report: MissingFilesReport) -> str:
    return report.reason.replace("dry_run=False", "--remove")


def missing_manifests(
    context: typer.Context,
    table: TableArgument,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove/--dry-run", help="Take the manifests out of the table, or only say which."
        ),
    ] = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Find manifests the table has and that are gone; without them nobody can read any row.

    Taken out, the files that the others name can be read again; the rows of all others are lost.
    `lake rollback` to a snapshot or tag that is whole loses less. Without --remove nothing is
    changed, and the exit code is 1 if a manifest is gone.
    An example: lake missing-manifests shop.orders
    """
    found = named_table(context, table)
    with progress_line("looking for manifests"):
        report = found.remove_missing_manifests(dry_run=not remove)
    if report.objection is not None:
        typer.secho(f"--remove would refuse: {report.objection}", fg="red", bold=True, err=True)
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is wrong, and stop.")
    ] = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Let the hints of a table and its branches say which snapshots there are.

    A wrong EARLIEST hides old snapshots from other programs, a wrong LATEST costs them a listing.
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
