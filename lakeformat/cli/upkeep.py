# SPDX-License-Identifier: Apache-2.0
"""``lake analyze``, ``rewrite-manifests``, ``compact-deletes`` and ``rewrite-file-index``."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from lakeformat.cli.arguments import DryRun, PartitionsWhereOption, TableArgument
from lakeformat.cli.many_tables import NameArgument, for_each_table, is_database, show_outcomes
from lakeformat.cli.output import AsJson, Shown, print_json, print_report, print_rows
from lakeformat.cli.progress import counting_rows, files_done, progress_line
from lakeformat.cli.warehouse import WarehouseOption, named_table, named_table_of_any_format
from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.types.byte_size import size

__all__ = ["register"]

ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        "-c",
        metavar="COLUMN",
        help="Compute statistics of this column. Repeatable. Default: no column, only the number "
        "of rows; in an Iceberg table, every column.",
    ),
]
AllColumns = Annotated[
    bool,
    typer.Option("--all-columns", help="Compute statistics of every column that can have them."),
]
PartitionsOption = Annotated[
    bool,
    typer.Option(
        "--partitions", help="Iceberg tables: count the rows and files of each partition instead."
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Also rebuild existing indexes.")]

_COLUMNS = (
    Shown("name", "column"),
    Shown("distinctCount", "distinct"),
    Shown("nullCount", "nulls"),
    Shown("min", "least"),
    Shown("max", "greatest"),
    Shown("avgLen", "average length"),
    Shown("maxLen", "longest"),
)
_FILES = (
    Shown("partition", "partition"),
    Shown("bucket", "bucket"),
    Shown("file", "file"),
    Shown("index_bytes", "index", size),
    Shown("reason", "reason"),
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(analyze)
    app.command("rewrite-manifests")(rewrite_manifests)
    app.command("compact-deletes")(compact_deletes)
    app.command("rewrite-file-index")(rewrite_file_index)


def analyze(
    context: typer.Context,
    name: NameArgument,
    column: ColumnOption = None,
    all_columns: AllColumns = False,
    partitions: PartitionsOption = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Compute statistics of a table, or of each table of a database, for query planners. Not for
    Mixed tables.

    Reads the chosen columns once. Without a chosen column, a Paimon table gets only its number of
    rows, but an Iceberg table gets the statistics of all columns. `lake statistics` shows the
    result of a Paimon table later.

    An example: lake analyze shop.orders --all-columns
    """
    if (bool(column), all_columns, partitions).count(True) > 1:
        raise InvalidRequestError(
            "--all-columns, --column and --partitions exclude each other: keep one of them"
        )
    if partitions:
        found: Any = named_table_of_any_format(context, name)
        if "analyze_partitions" not in found.operations:
            raise UnsupportedError(
                f"{found.location} is not an Iceberg table, and only Iceberg tables have "
                "statistics of partitions: "
                + (
                    f"run `lake analyze {shlex.quote(name)} --all-columns`"
                    if "analyze" in found.operations
                    else found.instead["analyze_partitions"]
                )
            )
        print_report(found.analyze_partitions(dry_run=dry_run), as_json=as_json)
        return
    columns = "all" if all_columns else column or None
    if is_database(name):
        outcomes = for_each_table(
            context,
            name,
            lambda each: each.analyze(columns, dry_run=dry_run),
            any_format=True,
        )
        show_outcomes(
            context, name, outcomes, (), lambda each: {"outcome": each.reason}, as_json=as_json
        )
        return
    table = named_table_of_any_format(context, name)
    with counting_rows("reading") as on_progress:
        report = table.analyze(columns, dry_run=dry_run, on_progress=on_progress)
    if as_json:
        print_json([report.to_dict()])
        return
    members = report.to_dict()["columns"]
    if members:
        rows = [{"name": name, **found} for name, found in members.items()]
        print_rows(_COLUMNS, _by_column(rows, _COLUMNS), empty="no column")
    if report.skipped:
        skipped = ", ".join(report.skipped)
        typer.echo(f"skipped columns, because their types have no statistics: {skipped}")
    typer.echo(report.reason)


def rewrite_manifests(
    context: typer.Context,
    table: TableArgument,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Merge small manifests, so that scans read fewer manifests. Not for Mixed tables.

    Rows and data files do not change.

    An example: lake rewrite-manifests shop.orders --dry-run
    """
    found = named_table_of_any_format(context, table)
    with progress_line("merging manifests"):
        report = found.compact_manifests(dry_run=dry_run)
    print_report(report, as_json=as_json)


def compact_deletes(
    context: typer.Context,
    table: TableArgument,
    convert_equality: Annotated[
        bool,
        typer.Option(
            "--convert-equality", help="Also turn equality deletes into position deletes."
        ),
    ] = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Merge the delete files of an Iceberg table, and remove those that apply to no data file.

    Data files do not change. In format version 3 position deletes become deletion vectors.

    An example: lake compact-deletes shop.orders --convert-equality --dry-run
    """
    found: Any = named_table_of_any_format(context, table)
    if "compact_deletes" not in found.operations:
        raise UnsupportedError(
            f"{found.location} is {found.kind}, but `lake compact-deletes` works only on Iceberg "
            f"tables: run `lake compact {shlex.quote(table)}`, which also compacts data files"
        )
    with progress_line("merging delete files"):
        report = found.compact_deletes(convert_equality=convert_equality, dry_run=dry_run)
    print_report(report, as_json=as_json)


def rewrite_file_index(
    context: typer.Context,
    table: TableArgument,
    where: PartitionsWhereOption = None,
    force: ForceOption = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Add file indexes to existing files, as the table options 'file-index.*' declare them.
    Only for Paimon tables.

    An example: lake rewrite-file-index shop.orders --where "dt >= '2024-01-31'" --dry-run
    """
    found = named_table(context, table)
    with files_done() as on_progress:
        report = found.rewrite_file_indexes(
            where=where, force=force, dry_run=dry_run, on_progress=on_progress
        )
    if as_json:
        print_json([report.to_dict()])
        return
    if report.changed:
        rows = [dict(each) for each in report.to_dict()["changed"]]
        print_rows(_FILES, _by_column(rows, _FILES), empty="no file")
    typer.echo(report.reason)


def _by_column(rows: list[dict[str, Any]], shown: tuple[Shown, ...]) -> dict[str, list[Any]]:
    return {column.key: [row.get(column.key) for row in rows] for column in shown}
