# SPDX-License-Identifier: Apache-2.0
"""``lake health``: the health of a table, or of each table of a database, with advice."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakeformat as lake
from lakeformat.cli.copyable import copyable
from lakeformat.cli.grid import GridColumn, print_grid
from lakeformat.cli.health_numbers import ages, held_bytes
from lakeformat.cli.iceberg_health import PARTITIONS, iceberg_facts
from lakeformat.cli.many_tables import NameArgument
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.warehouse import (
    WarehouseOption,
    existing_catalog_of_any_format,
    named_table_of_any_format,
)
from lakeformat.errors import LakeError, UnsupportedError
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import HealthReport, IcebergHealthReport
    from lakeformat.catalog.iceberg import IcebergCatalog
    from lakeformat.tables.health.health_summary import HealthSummary

__all__ = ["register"]

STYLE = {
    "healthy": "green",
    "degraded": "yellow",
    "unhealthy": "bold red",
    "unreadable": "bold red",
}
EXIT_FAILED = 1
_UNREADABLE = "unreadable"

UnknownOption = Annotated[
    bool,
    typer.Option(
        "--unknown",
        help="Also list the directories, to find unreferenced, missing and truncated files. Only "
        "for Paimon tables.",
    ),
]

_BUCKETS = (
    Shown("partition", "partition"),
    Shown("bucket", "bucket"),
    Shown("files", "files"),
    Shown("bytes", "size", size),
    Shown("rows", "rows"),
    Shown("small_files", "small files"),
    Shown("sorted_runs", "sorted runs"),
    Shown("level_0_files", "level 0"),
)


def register(app: typer.Typer) -> None:
    """Add ``health`` to the program."""
    app.command()(health)


def health(
    context: typer.Context,
    name: NameArgument,
    unknown: UnknownOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the health of a table, with reasons and advice; for a database, one line for each table.

    An example: lake health shop.orders
    """
    if "." in name or "/" in name:
        table = named_table_of_any_format(context, name)
        _show_table(context, table.health(unknown=unknown), as_json=as_json)
    else:
        _show_database(context, name, unknown=unknown, as_json=as_json)


def _show_table(
    context: typer.Context, report: HealthReport | IcebergHealthReport, *, as_json: bool
) -> None:
    if as_json:
        print_json([report.to_dict()])
        return

    def worded(text: str) -> str:
        return copyable(context, text, report.table)

    own = _facts(report) if isinstance(report, lake.HealthReport) else iceberg_facts(report)
    facts = [(what, worded(found)) for what, found in [*_verdict(report), *own]]
    print_grid(
        [
            GridColumn("fact", [what for what, _ in facts]),
            GridColumn("found", [found for _, found in facts], styles=STYLE),
        ]
    )
    if isinstance(report, lake.HealthReport):
        _show_worst("buckets", _BUCKETS, report.worst_buckets)
    else:
        _show_worst("partitions", PARTITIONS, report.worst_partitions)
    if report.reasons:
        typer.echo()
        print_grid(
            [
                GridColumn("why", [worded(reason.finding) for reason in report.reasons]),
                GridColumn("what to do", [worded(reason.advice) for reason in report.reasons]),
            ]
        )


def _show_worst(what: str, columns: Sequence[Shown], worst: Sequence[Any]) -> None:
    if worst:
        typer.echo(f"\n{what}, most urgent first")
        values = {column.key: [getattr(each, column.key) for each in worst] for column in columns}
        print_rows(columns, values, empty="")


def _verdict(report: HealthSummary) -> Iterator[tuple[str, str]]:
    parts = report.score_parts
    yield "table", report.table
    yield "verdict", str(report.verdict)
    if report.first_step is not None:
        yield "do first", report.first_step
    yield (
        "score",
        f"{report.score} of 100 points (100 is best): {parts.small_files} of 40 for small files, "
        f"{parts.rows_to_merge} of 40 for rows to merge, {parts.hidden_rows} of 20 for hidden rows"
        + (f", {parts.history} for the history" if parts.history else ""),
    )
    if report.why_they_differ is not None:
        yield "", report.why_they_differ


def _facts(report: HealthReport) -> list[tuple[str, str]]:
    files, deletes, storage = report.files, report.deletes, report.storage
    found = [
        (
            "files",
            f"{files.files} in {counted(files.buckets, 'bucket')} of "
            f"{counted(files.partitions, 'partition')}",
        ),
        ("small files", f"{files.small_files} with {size(files.small_bytes)}"),
    ]
    if files.most_sorted_runs is not None:
        due = counted(files.buckets_due, "bucket")
        runs = f"at most {files.most_sorted_runs} in a bucket, too many in {due}"
        found.append(("sorted runs", runs))
        level_0 = (
            f"{counted(files.level_0_files or 0, 'file')} with {size(files.level_0_bytes or 0)}"
        )
        found.append(("level 0", level_0))
    if files.untold_files is not None:
        covered = "covers every commit"
        if files.untold_files:
            of_files = (
                f"{counted(files.untold_rows or 0, 'row')} in {counted(files.untold_files, 'file')}"
            )
            covered = f"does not cover {of_files} yet: lake changelog {shlex.quote(report.table)}"
        found.append(("changelog", covered))
    deleted = f"{deletes.delete_rows + deletes.hidden_rows} of {files.rows} ({deletes.ratio:.1%})"
    found.append(("deleted rows", deleted))
    found += _history(report)
    held = held_bytes(storage)
    if storage.overdue_bytes:
        held += f" (an expiry frees {size(storage.overdue_bytes)})"
    if storage.unknown is not None:
        held += f", {size(storage.unknown.bytes)} in {storage.unknown.files} unknown files"
    else:
        held += "; --unknown also counts unreferenced files"
    found.append(("bytes", held))
    return [*found, *(("note", note) for note in report.notes)]


def _history(report: HealthReport) -> Iterator[tuple[str, str]]:
    snapshots = report.snapshots
    if snapshots.count:
        beyond = _beyond(snapshots.overdue, snapshots.expirable)
        yield "snapshots", f"{snapshots.count}: {ages(snapshots)}{beyond}"
    if snapshots.changelogs:
        beyond = _beyond(snapshots.overdue_changelogs, snapshots.expirable_changelogs)
        yield "changelogs", f"{snapshots.changelogs} outlived their snapshots{beyond}"
    if snapshots.holders:
        yield "kept longest by", str(snapshots.holders[0])


def _beyond(overdue: int, expirable: int) -> str:
    if not overdue:
        return ""
    kept = overdue - expirable
    by_readers = f", {kept} of them kept for a consumer" if kept else ""
    return f"; {overdue} beyond their retention{by_readers}"


_TABLES = (
    Shown("table", "table"),
    Shown("verdict", "verdict"),
    Shown("score", "score"),
    Shown("files", "files"),
    Shown("small_files", "small files"),
    Shown("sorted_runs", "sorted runs"),
    Shown("bytes", "size", size),
    Shown("time_travel_bytes", "time travel", size),
    Shown("unknown_bytes", "unknown", size),
    Shown("snapshots", "snapshots"),
    Shown("why", "why"),
)


def _show_database(context: typer.Context, database: str, *, unknown: bool, as_json: bool) -> None:
    """Print one line for each table.

    If a table cannot be read, its line has the error, and the exit code is 1. If the format of a
    table has no health report, its line has the reason, and the exit code is not changed.
    """
    catalog = existing_catalog_of_any_format(context)
    if unknown and not isinstance(catalog, lake.Catalog):
        raise UnsupportedError(
            "--unknown is for Paimon tables, but the catalog has Iceberg tables: use "
            f"`lake orphans {database}`, which lists unreferenced files"
        )
    names = [f"{database}.{table}" for table in catalog.list_tables(database)]
    found = [(name, _report_or_error(catalog, name, unknown=unknown)) for name in names]
    if as_json:
        print_json(_as_dict(name, report) for name, report in found)
    else:
        rows = [_line(name, report) for name, report in found]
        rows = [{**row, "why": copyable(context, row["why"])} for row in rows]
        values = {column.key: [row.get(column.key) for row in rows] for column in _TABLES}
        print_rows(_TABLES, values, empty=f"{database} has no table")
    if any(isinstance(each, LakeError) and _lacks(each) is None for _, each in found):
        raise typer.Exit(EXIT_FAILED)


def _report_or_error(
    catalog: lake.Catalog | IcebergCatalog, name: str, *, unknown: bool
) -> HealthReport | IcebergHealthReport | LakeError:
    try:
        table: Any = catalog.table(name)
        report: HealthReport | IcebergHealthReport = table.health(unknown=unknown)
    except LakeError as error:
        return error
    return report


def _lacks(error: LakeError) -> str | None:
    """Return the reason if the format of the table has no health report; None for any other
    error.
    """
    return error.lacks if isinstance(error, UnsupportedError) else None


def _as_dict(name: str, report: HealthSummary | LakeError) -> dict[str, Any]:
    if isinstance(report, LakeError):
        if (lacks := _lacks(report)) is not None:
            return {"table": name, "verdict": None, "skipped": lacks}
        return {
            "table": name,
            "verdict": _UNREADABLE,
            "error": f"{type(report).__name__}: {report}",
        }
    return {**report.to_dict(), "table": name}


def _line(name: str, report: HealthReport | IcebergHealthReport | LakeError) -> dict[str, Any]:
    if isinstance(report, LakeError):
        if (lacks := _lacks(report)) is not None:
            return {"table": name, "verdict": "", "why": f"skipped: {lacks}"}
        return {"table": name, "verdict": _UNREADABLE, "why": f"{type(report).__name__}: {report}"}
    runs, unknown = None, None
    if isinstance(report, lake.HealthReport):
        runs, unknown = report.files.most_sorted_runs, report.storage.unknown
    return {
        "table": name,
        "verdict": str(report.verdict),
        "score": report.score,
        "files": report.files.files,
        "small_files": report.files.small_files,
        "sorted_runs": runs,
        "bytes": report.storage.live_bytes,
        "time_travel_bytes": report.storage.time_travel_bytes,
        "unknown_bytes": None if unknown is None else unknown.bytes,
        "snapshots": report.snapshots.count,
        "why": "\n".join(map(str, report.reasons)),
    }
