# SPDX-License-Identifier: Apache-2.0
"""``lake maintain``: all maintenance that a table, or each table of a database, needs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import DryRun
from lakeformat.cli.compact import ExecutorOption, YesOption, goes_on_beside, other_compactors
from lakeformat.cli.copyable import copyable, worded
from lakeformat.cli.grid import GridColumn, print_grid
from lakeformat.cli.health import STYLE
from lakeformat.cli.many_tables import (
    NameArgument,
    for_each_table,
    is_database,
    show_outcomes,
    tables_of,
)
from lakeformat.cli.output import AsJson, Shown, print_json
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import (
    WarehouseOption,
    existing_catalog_of_any_format,
    named_table_of_any_format,
)
from lakeformat.executor import require_executor
from lakeformat.types.byte_size import size

if TYPE_CHECKING:
    from lakeformat import MaintainProgress, MaintainReport

__all__ = ["EXIT_NOT_HEALTHY", "register"]

EXIT_FAILED = 1
EXIT_NOT_HEALTHY = 4

ExpireConsumersOption = Annotated[
    str | None,
    typer.Option(
        metavar="AGE",
        help="Delete consumers without progress for this long, such as '2 d', because they keep "
        "snapshots from expiring. Default: the option 'consumer.expiration-time' of a Paimon "
        "table; consumers of other tables are kept.",
    ),
]

_FIGURES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("verdict", "verdict", str),
    ("score", "score", str),
    ("files", "files", "{:,}".format),
    ("level_0_files", "files at level 0", "{:,}".format),
    ("most_sorted_runs", "most sorted runs in a bucket", "{:,}".format),
    ("delete_files", "delete files", "{:,}".format),
    ("manifests", "manifests", "{:,}".format),
    ("live_bytes", "size of the newest snapshot", size),
    ("snapshots", "snapshots", "{:,}".format),
    ("changelogs", "changelogs", "{:,}".format),
    ("time_travel_files", "files only for time travel", "{:,}".format),
    ("time_travel_bytes", "size only for time travel", size),
    ("dead_files", "orphan files", "{:,}".format),
    ("dead_bytes", "size of orphan files", size),
)

_TABLES = (
    Shown("verdict", "verdict"),
    Shown("files", "files"),
    Shown("level_0", "level 0"),
    Shown("snapshots", "snapshots"),
    Shown("dead", "orphan files"),
)


def register(app: typer.Typer) -> None:
    """Add ``maintain`` to the program."""
    app.command()(maintain)


def maintain(
    context: typer.Context,
    name: NameArgument,
    dry_run: DryRun = False,
    expire_consumers: ExpireConsumersOption = None,
    executor: ExecutorOption = "threads",
    yes: YesOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Run all maintenance that a table, or each table of a database, needs.

    For a Paimon table, deletes expired partitions if 'partition.expiration-time' is set, compacts
    buckets, expires all snapshots and changelogs beyond the table's retention, and deletes orphan
    files last changed at least a day before the newest commit. For an Iceberg table, merges delete
    files, data files and manifests, expires snapshots, and deletes orphan files older than three
    days. For a Mixed table, merges changes, expires both stores, and deletes orphan files older
    than three days.

    Run it at any time: a step that is not needed does nothing. If another program also compacts a
    table, the command asks at a terminal whether to continue, except with --yes or --dry-run. If
    you answer no, the table is skipped.

    Exit code: 0 healthy, or you named one table and answered no; 4 an obstacle remains, or you
    named a database and answered no for a table; 1 a step failed.

    An example: lake maintain shop.orders --dry-run
    """
    require_executor(executor)
    how: dict[str, Any] = {
        "dry_run": dry_run,
        "expire_consumers": expire_consumers,
        "executor": executor,
    }
    if is_database(name):
        _maintain_database(context, name, how, yes=yes, as_json=as_json)
        return
    table = named_table_of_any_format(context, name)
    if not dry_run and not goes_on_beside(context, [table.other_compactor()], yes=yes):
        return
    with _progressing() as on_progress:
        report = table.maintain(**how, on_progress=on_progress)
    if as_json:
        print_json([report.to_dict()])
    else:
        _show(context, report)
    _end([report])


def _maintain_database(
    context: typer.Context, database: str, how: dict[str, Any], *, yes: bool, as_json: bool
) -> None:
    is_dry = how["dry_run"]
    left_out = [] if is_dry else _left_out(context, database, yes=yes)
    outcomes = for_each_table(
        context,
        database,
        lambda table: table.maintain(**how),
        without=left_out,
        any_format=True,
    )
    reports = [each.report for each in outcomes if each.report is not None]
    heading = "what would be done" if is_dry else "what was done"
    try:
        if outcomes or not left_out:
            show_outcomes(
                context, database, outcomes, _TABLES, _cells, as_json=as_json, heading=heading
            )
    finally:  # also after an error of one table: the obstacles of the other tables are shown
        if not as_json:
            _show_obstacles(context, reports)
            if is_dry and not all(report.is_idle for report in reports):
                _show_command(context)
        for name in left_out:
            line = f"skipped {name}; to maintain it: lake maintain {shlex.quote(name)} --yes"
            typer.echo(copyable(context, line), err=True)
    _end(reports)
    if left_out:
        raise typer.Exit(EXIT_NOT_HEALTHY)


def _left_out(context: typer.Context, database: str, *, yes: bool) -> list[str]:
    """Return the tables to skip: another program compacts them, and the user at the terminal
    declined to maintain them.
    """
    catalog = existing_catalog_of_any_format(context)
    names = tables_of(catalog, database)
    beside = zip(names, other_compactors(catalog, names), strict=True)
    return [
        name
        for name, other in beside
        if not goes_on_beside(context, [other], yes=yes, declined=f"{name} is skipped")
    ]


def _end(reports: Sequence[MaintainReport]) -> None:
    """Exit with 1 if a step failed, else with 4 if a table is not healthy. Return if all tables are
    healthy.
    """
    if any(report.failed for report in reports):
        raise typer.Exit(EXIT_FAILED)
    if not all(report.is_healthy for report in reports):
        raise typer.Exit(EXIT_NOT_HEALTHY)


def _show(context: typer.Context, report: MaintainReport) -> None:
    _show_figures(report)
    typer.echo()
    print_grid(
        [
            GridColumn("step", [step.step for step in report.steps]),
            GridColumn("outcome", [str(step.outcome) for step in report.steps]),
            GridColumn(
                "what it does" if report.dry_run else "what it did", _reasons(context, report)
            ),
        ]
    )
    if report.note is not None:
        typer.echo(f"\nnote: {worded(context, report.note, report.table)}")
    _show_obstacles(context, [report])
    if report.dry_run and not report.is_idle:
        _show_command(context)
    elif report.is_healthy:
        typer.echo(f"\n{report.table} is healthy")


def _show_command(context: typer.Context) -> None:
    """Print the command that carries out the steps of a dry run."""
    words = ["lake", "maintain", context.params["name"]]
    for option in ("expire_consumers", "executor"):
        source = context.get_parameter_source(option)
        if getattr(source, "name", "") == "COMMANDLINE":
            words += [f"--{option.replace('_', '-')}", context.params[option]]
    typer.echo(f"\nnothing was changed; to do it: {copyable(context, shlex.join(words))}")


def _reasons(context: typer.Context, report: MaintainReport) -> list[str]:
    return [
        worded(context, step.reason, report.table)
        if step.error is None
        else "see the obstacles below"
        for step in report.steps
    ]


def _show_figures(report: MaintainReport) -> None:
    rows = []
    for key, heading, show in _FIGURES:
        before, after = getattr(report.before, key), getattr(report.after, key)
        if before is None and after is None:
            continue
        rows.append((heading, *("" if each is None else show(each) for each in (before, after))))
    headings, before_texts, after_texts = zip(*rows, strict=True)
    print_grid(
        [
            GridColumn(report.table, headings),
            GridColumn("before", before_texts, styles=STYLE),
            GridColumn("expected" if report.dry_run else "now", after_texts, styles=STYLE),
        ]
    )


def _show_obstacles(context: typer.Context, reports: Sequence[MaintainReport]) -> None:
    found = [(report.table, each) for report in reports for each in report.obstacles]
    if not found:
        return
    typer.echo()
    columns = [
        GridColumn(
            "obstacle",
            [worded(context, each.finding, table) for table, each in found],
        ),
        GridColumn("what to do", [worded(context, each.advice, table) for table, each in found]),
    ]
    if len(reports) > 1:
        columns.insert(0, GridColumn("table", [table for table, _ in found]))
    print_grid(columns)


def _cells(report: MaintainReport) -> dict[str, Any]:
    worked = [
        step.reason if step.error is None else f"{step.step} failed, see below"
        for step in report.steps
        if step.outcome != "not needed"
    ]
    return {
        "verdict": _change(report, "verdict"),
        "files": _change(report, "files"),
        "level_0": _change(report, "level_0_files"),
        "snapshots": _change(report, "snapshots"),
        "dead": _change(report, "dead_files"),
        "outcome": "\n".join(worked) or "no step was needed",
    }


def _change(report: MaintainReport, key: str) -> str | None:
    """Return the figure ``key`` before and after the maintenance, such as ``300 to 6``.

    If both are equal, or only one is known, return one figure; None if both are unknown.
    """
    before, after = getattr(report.before, key), getattr(report.after, key)
    texts = [
        f"{each:,}" if isinstance(each, int) else str(each)
        for each in (before, after)
        if each is not None
    ]
    return " to ".join(dict.fromkeys(texts)) or None


@contextmanager
def _progressing() -> Iterator[Callable[[MaintainProgress], None] | None]:
    """Yield a function that prints the current step on stderr; None if stderr is not a terminal."""
    with progress_line("health") as update:
        if update is None:
            yield None
            return

        def heard(progress: MaintainProgress) -> None:
            done = f", {progress.done:,}" if progress.done or progress.total else ""
            total = "" if progress.total is None else f" of {progress.total:,}"
            unit = f" {progress.unit}" if done else ""
            update(description=f"{progress.table}: {progress.step}{done}{total}{unit}")

        yield heard
