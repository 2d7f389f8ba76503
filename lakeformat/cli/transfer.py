"""``lake migrate``, ``lake clone`` and ``lake clone-database``: tables from elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

import lakeformat as lake
from lakeformat.cli.arguments import DryRun
from lakeformat.cli.many_tables import error_text
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.progress import files_done
from lakeformat.cli.warehouse import WarehouseOption, existing_catalog, named_catalog, named_table
from lakeformat.errors import InvalidRequestError, LakeError, NotFoundError
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat.catalog.transfer.transfer_reports import CloneReport
    from lakeformat.tables.table_by_table import TableOutcome

__all__ = ["register"]

NewTableArgument = Annotated[
    str, typer.Argument(metavar="NEW", help="database.table of the new table")
]
FullOption = Annotated[
    bool, typer.Option("--full", help="Every snapshot, tag and branch, not one state alone.")
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="WAREHOUSE",
        help="Path or URI of the other warehouse, a filesystem catalog; the same one if unsaid.",
    ),
]
KeyValueOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of the table; may be repeated."),
]
PartitionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="COLUMN=TYPE",
        help="The type of a partition column, such as dt=DATE; STRING if unsaid.",
    ),
]

_FILES = (
    Shown("how", "how"),
    Shown("partition", "partition"),
    Shown("rows", "rows"),
    Shown("bytes", "size", size),
    Shown("file", "file"),
    Shown("reason", "reason"),
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(migrate)
    app.command()(clone)
    app.command("clone-database")(clone_database)


def migrate(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="DIRECTORY", help="Where Parquet or ORC files lie.")
    ],
    table: NewTableArgument,
    partition: PartitionOption = None,
    option: KeyValueOption = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy the files; else they belong to the table.")
    ] = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a table of a directory of Parquet and ORC files, where they lie if that goes.

    Directories such as dt=2024-01-31 become partitions. A file that is registered where it lies
    belongs to the table from then on: compaction and expiry remove it. Look first:

    lake migrate /data/events shop.events --partition dt=DATE --dry-run
    """
    report = lake.migrate_directory(
        existing_catalog(context) if dry_run else named_catalog(context),
        source,
        table,
        partition_types=_pairs("--partition", partition),
        options=_pairs("--option", option),
        copy=copy,
        dry_run=dry_run,
    )
    if as_json:
        print_json([report.to_dict()])
        return
    rows = report.to_dict()["files"]
    values = {column.key: [row[column.key] for row in rows] for column in _FILES}
    print_rows(_FILES, values, empty="no file")
    columns = ", ".join(f"{name} {kind}" for name, kind in report.columns)
    typer.echo(f"{table} ({columns})")
    typer.echo(report.reason)


def clone(
    context: typer.Context,
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="database.table, a branch, or a directory")
    ],
    new: NewTableArgument,
    to: ToOption = None,
    full: FullOption = False,
    snapshot: Annotated[int | None, typer.Option(help="The state of this snapshot.")] = None,
    tag: Annotated[str | None, typer.Option(help="The state of this tag.")] = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Copy a table to another name or warehouse, file by file: its newest state, or all of it.

    Repeat a clone that was interrupted: it goes on.

    lake clone shop.orders shop.orders --to s3://backup/warehouse --full
    """
    found = named_table(context, table)
    target = _target(context, to)
    if to is not None:
        _require_database(target, new.partition(".")[0], to)
    with files_done() as tell:
        report = lake.clone_table(
            found,
            target,
            new,
            snapshot=snapshot,
            tag=tag,
            full=full,
            dry_run=dry_run,
            tell=tell,
        )
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(_said(report))


def clone_database(
    context: typer.Context,
    database: Annotated[str, typer.Argument(metavar="DATABASE")],
    to: ToOption = None,
    new: Annotated[
        str | None, typer.Option("--as", metavar="DATABASE", help="Its name there, if another.")
    ] = None,
    including: Annotated[
        str, typer.Option(metavar="REGEX", help="Only tables of such names.")
    ] = ".*",
    excluding: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Not those of such names.")
    ] = None,
    full: FullOption = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Copy the tables of a database one after the other; one that fails stops no other.

    lake clone-database shop --to /backup/warehouse --excluding 'tmp_.*'
    """
    failed: list[TableOutcome[CloneReport]] = []

    def outcomes() -> Iterator[TableOutcome[CloneReport]]:
        with files_done() as tell:
            found = lake.clone_database(
                existing_catalog(context),
                database,
                _target(context, to),
                to=new,
                including=including,
                excluding=excluding,
                full=full,
                dry_run=dry_run,
                tell=tell,
            )
            for outcome in found:
                failed.extend([outcome] if outcome.error is not None else [])
                yield outcome

    if as_json:
        print_json(outcome.to_dict() for outcome in outcomes())
    else:
        for outcome in outcomes():
            said = error_text(context, outcome) if outcome.report is None else _said(outcome.report)
            typer.echo(f"{outcome.table}: {said}")
    if failed:
        raise LakeError(
            f"{counted(len(failed), 'table was', 'tables were')} not cloned: "
            f"{failed[0].table} first"
        )


def _said(report: CloneReport) -> str:
    return f"{report.what} to {report.target}, {size(report.bytes)}: {report.reason}"


def _target(context: typer.Context, to: str | None) -> lake.Catalog:
    """A warehouse whose names are its directories, with the options of this one's storage."""
    if to is None:
        return named_catalog(context)
    from lakeformat.storage import is_storage_option

    said = _pairs("--catalog-option", context.find_root().params.get("catalog_option"))
    options = {key: value for key, value in said.items() if is_storage_option(key)}
    return lake.open_catalog(to, options=options)


def _require_database(target: lake.Catalog, name: str, to: str) -> None:
    """The library would name the command that makes it in the warehouse copied from."""
    if name not in target.list_databases():
        made = shlex.join(["lake", "-w", to, "create-database", name])
        raise NotFoundError(f"database {name!r} does not exist in {to}: make it with `{made}`")


def _pairs(option: str, words: list[str] | None) -> dict[str, str]:
    found = {}
    for word in words or []:
        key, equals, value = word.partition("=")
        if not equals:
            raise InvalidRequestError(f"write {option} KEY=VALUE: {word!r} has no equals sign")
        found[key] = value
    return found
