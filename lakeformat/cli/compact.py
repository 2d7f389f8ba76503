# SPDX-License-Identifier: Apache-2.0
"""``lake compact`` and ``lake compact-database``: fewer and larger files with the same rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.confirm import goes_on
from lakeformat.cli.copyable import copyable
from lakeformat.cli.many_tables import is_database, outcome_text
from lakeformat.cli.output import AsJson, listed, print_json
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import (
    WarehouseOption,
    existing_catalog_of_any_format,
    named_table_of_any_format,
)
from lakeformat.errors import CommitConflictError, InvalidRequestError, LakeError, NotFoundError
from lakeformat.executor import require_executor

if TYPE_CHECKING:
    import lakeformat as lake
    from lakeformat import CompactProgress, CompactReport, OtherCompactor
    from lakeformat.tables.table_by_table import TableOutcome

__all__ = [
    "ExecutorOption",
    "IdleOption",
    "YesOption",
    "compacted",
    "goes_on_beside",
    "other_compactors",
    "progressing",
    "register",
]

_STRATEGIES = (
    "minor compacts only the files that the table's options select; full compacts more. In a "
    "Paimon table with a primary key, full compacts every bucket completely; in a Paimon table "
    "without a primary key, full merges small files, even if they are few. In Iceberg tables, full "
    "also compacts groups of only two files, and all files with deletes. In Mixed tables, full is "
    "Amoro's full optimizing."
)
StrategyOption = Annotated[
    str,
    typer.Option(
        metavar="STRATEGY",
        help=f"{_STRATEGIES} sort and zorder (only for Iceberg tables) compact the files that "
        "minor selects, and sort their rows: see --order-by.",
    ),
]
DatabaseStrategyOption = Annotated[str, typer.Option(metavar="STRATEGY", help=_STRATEGIES)]
WhereOption = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="""Only these partitions, such as "dt >= '2024-01-31'". In an Iceberg table the """
        "condition may name any column, and selects the files that may have matching rows. Not "
        "for Mixed tables.",
    ),
]
IdleOption = Annotated[
    str | None,
    typer.Option(
        metavar="AGE",
        help="Only partitions whose newest file is older than this, such as '1 h'; these get "
        "a full compaction. Only for Paimon tables.",
    ),
]
BucketsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="N,M",
        help="Only these buckets of each partition, such as 0,3. Repeatable. Only for Paimon "
        "tables.",
    ),
]
OrderByOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B",
        help="Sort all rows of the chosen partitions by these columns; with --strategy sort or "
        "zorder, only the rows of the selected files. Repeatable. Default with --strategy sort: "
        "the sort order of the table. Not for Mixed tables, and not for Paimon tables with a "
        "primary key. Iceberg tables also take keys such as 'day(ts) desc nulls last'.",
    ),
]
OrderStrategyOption = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        help="How --order-by sorts. order: by the first column, then the next; zorder and hilbert: "
        "along a curve through these columns (hilbert not in Iceberg tables). Default: order.",
    ),
]
MaxCommitsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Iceberg tables: commit groups of files as soon as they are compacted, in up to N "
        "commits. If a commit has a conflict, its groups are committed one by one, which can take "
        "more than N commits. A group that is still in conflict keeps its old files. Default: all "
        "groups in one commit.",
    ),
]
ExecutorOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="threads: about one per CPU; serial: no parallel work."),
]
YesOption = Annotated[
    bool,
    typer.Option(
        "--yes",
        "-y",
        help="If another program also compacts a table: print a warning, and compact without "
        "asking.",
    ),
]
PlanOption = Annotated[
    bool,
    typer.Option("--plan", "--dry-run", help="Only show what would be done."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(compact)
    app.command("compact-database")(compact_database)


def compact(
    context: typer.Context,
    table: TableArgument,
    strategy: StrategyOption = "full",
    where: WhereOption = None,
    idle: IdleOption = None,
    buckets: BucketsOption = None,
    order_by: OrderByOption = None,
    order_strategy: OrderStrategyOption = None,
    max_commits: MaxCommitsOption = None,
    executor: ExecutorOption = "threads",
    plan: PlanOption = False,
    yes: YesOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Merge the files of a table into fewer and larger ones.

    An example: lake compact shop.orders --where "dt >= '2024-01-31'" --dry-run
    """
    found = _named_table(context, table)
    which: dict[str, Any] = {
        "strategy": strategy,
        "where": where,
        "idle": idle,
        "buckets": _numbers(buckets) if buckets else None,
        "order_by": _keys(order_by) if order_by else None,
        "order_strategy": order_strategy,
        **found.given_arguments("compact", max_commits=max_commits),
    }
    require_executor(executor)
    if plan:
        planned = found.plan_compaction(**which)
        if as_json:
            print_json([planned.to_dict()])
        else:
            typer.echo(str(planned))
        return
    if not goes_on_beside(context, [found.other_compactor()], yes=yes):
        return
    with progressing() as on_progress:
        report, failure = compacted(found, **which, executor=executor, on_progress=on_progress)
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(report.sentence)
    if failure is not None:
        raise failure


def compacted(table: lake.Table, **how: Any) -> tuple[CompactReport, LakeError | None]:
    """Compact a table; return the report, and the error that stopped the compaction early.

    The error is None if the compaction is complete. If the error has no report, it is raised.
    """
    try:
        report = table.compact(**how)
    except LakeError as error:
        if error.report is None:
            raise
        done: Any = error.report
        return done, error
    return report, why_unfinished(report)


def goes_on_beside(
    context: typer.Context,
    others: Iterable[OtherCompactor | None],
    *,
    yes: bool,
    declined: str = "nothing was changed",
) -> bool:
    """Warn of every other program that compacts a table; return True if the compaction may start.

    If there is such a program, a person at a terminal is asked, except with ``yes``. If the person
    declines, ``declined`` is printed, and False is returned. A script continues.
    """
    warnings = [
        copyable(context, other.warning, other.table) for other in others if other is not None
    ]
    return goes_on(warnings, "Compact it anyway?", yes=yes, declined=declined)


def why_unfinished(report: CompactReport) -> LakeError | None:
    """Return a ``CommitConflictError`` with the reason if a compaction stopped early; else None."""
    if report.unfinished is None:
        return None
    return CommitConflictError(f"{report.table}: {report.unfinished}")


def _named_table(context: typer.Context, name: str) -> Any:
    try:
        return named_table_of_any_format(context, name)
    except InvalidRequestError as reason:
        if not is_database(name):
            raise
        more = f"to compact all tables of a database: `lake compact-database {name}`"
        raise InvalidRequestError(f"{reason}; {more}") from None


def _keys(order_by: list[str]) -> list[str]:
    """Return the sort keys. Commas separate them, except commas inside of parentheses."""
    return [key.strip() for key in re.split(r",(?![^(]*\))", ",".join(order_by))]


def _numbers(buckets: list[str]) -> list[int]:
    try:
        return [int(number) for number in listed(",".join(buckets))]
    except ValueError:
        raise InvalidRequestError(
            f"--buckets {','.join(buckets)!r} is not a list of whole numbers: write them with "
            "commas, such as 0,3"
        ) from None


def compact_database(
    context: typer.Context,
    databases: Annotated[
        str,
        typer.Argument(
            metavar="DATABASE",
            help="A regular expression for whole names of databases, such as 'shop.*'.",
        ),
    ],
    including: Annotated[
        str, typer.Option(metavar="REGEX", help="Only tables whose whole 'database.table' matches.")
    ] = ".*",
    excluding: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="Leave out tables whose whole 'database.table' matches."
        ),
    ] = None,
    strategy: DatabaseStrategyOption = "full",
    where: WhereOption = None,
    idle: IdleOption = None,
    executor: ExecutorOption = "threads",
    plan: PlanOption = False,
    yes: YesOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Compact the tables of databases, one after the other; a failed table does not stop the next.

    An example: lake compact-database 'shop|sales' --excluding '.*_tmp' --strategy minor
    """
    # Arrow takes a while to load, and `lake --help` does not need it.
    from lakeformat.catalog.compact_tables import compact_tables, matching_tables, plan_tables

    require_executor(executor)
    catalog: Any = existing_catalog_of_any_format(context)
    names = matching_tables(catalog, databases=databases, including=including, excluding=excluding)
    if not names:
        raise NotFoundError(
            f"no table matches in databases {databases!r}. The patterns are regular expressions "
            "for whole names: 'shop', 'shop.*' or '.*' for databases, 'shop\\..*_daily' for "
            "tables. `lake tables` lists all tables"
        )
    if not plan and not goes_on_beside(context, other_compactors(catalog, names), yes=yes):
        return
    which: dict[str, Any] = {"strategy": strategy, "where": where, "idle": idle}
    with progressing() as on_progress:
        if plan:
            outcomes: Iterable[TableOutcome[Any]] = plan_tables(catalog, names, **which)
        else:
            how: dict[str, Any] = {"executor": executor, "on_progress": on_progress}
            outcomes = compact_tables(catalog, names, **which, **how)
        failed = _print_outcomes(context, outcomes, is_plan=plan, as_json=as_json)
    if failed:
        raise LakeError(
            f"{len(failed)} of {len(names)} tables failed; the first is {failed[0]}. Correct the "
            "cause that is printed for each of them, then run the command again"
        )


def _print_outcomes(
    context: typer.Context,
    outcomes: Iterable[TableOutcome[Any]],
    *,
    is_plan: bool,
    as_json: bool,
) -> list[str]:
    """Print the outcome of each table as soon as it is known. Return the names of the tables that
    failed or stopped early.
    """
    failed: list[str] = []

    def noted() -> Iterator[TableOutcome[Any]]:
        for outcome in outcomes:
            if _is_left(outcome, is_plan=is_plan):
                failed.append(outcome.table)
            yield outcome

    if as_json:
        print_json(outcome.to_dict() for outcome in noted())
    else:
        for outcome in noted():
            typer.echo(_line(context, outcome, is_plan=is_plan))
    return failed


def other_compactors(catalog: Any, names: Sequence[str]) -> Iterator[OtherCompactor | None]:
    """Yield, for each table, the other program that compacts it; None if there is no such program.

    A table that cannot be opened also gives None, because its compaction reports the error.
    """
    for name in names:
        found = None
        with suppress(LakeError):
            found = catalog.table(name).other_compactor()
        yield found


def _is_left(outcome: TableOutcome[Any], *, is_plan: bool) -> bool:
    """Return True if the plan or the compaction failed, or if the compaction stopped early."""
    if outcome.report is None:
        return outcome.error is not None
    return not is_plan and why_unfinished(outcome.report) is not None


def _line(context: typer.Context, outcome: TableOutcome[Any], *, is_plan: bool) -> str:
    if outcome.report is not None and is_plan:
        return str(outcome.report)
    text = outcome_text(context, outcome) if outcome.report is None else outcome.report.sentence
    return f"{outcome.table}: {text}"


@contextmanager
def progressing() -> Iterator[Callable[[CompactProgress], None] | None]:
    """Yield a function that updates a progress bar on stderr; None if stderr is not a terminal."""
    with progress_line("planning", bar=True) as update:
        if update is None:
            yield None
            return

        def on_progress(done: Any) -> None:
            update(
                description=f"{done.table}: {done.done} of {done.units} units",
                total=done.bytes or None,
                completed=done.bytes_done,
            )

        yield on_progress
