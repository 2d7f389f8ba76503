# SPDX-License-Identifier: Apache-2.0
"""``lake migrate`` makes tables of files; ``lake clone`` and ``lake clone-database`` copy
tables.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakeformat as lake
from lakeformat.cli.arguments import DryRun, TableArgument
from lakeformat.cli.many_tables import outcome_text
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.progress import files_done
from lakeformat.cli.warehouse import (
    WarehouseOption,
    catalog_of_any_format,
    existing_catalog,
    named_catalog,
    named_table_to_clone,
)
from lakeformat.errors import AlreadyExistsError, InvalidRequestError, LakeError, NotFoundError
from lakeformat.tables.named_once import named_once
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import CloneReport
    from lakeformat.tables.table_by_table import TableOutcome

__all__ = ["register"]

NewTableArgument = Annotated[str, typer.Argument(metavar="NEW", help="The new database.table.")]
FullOption = Annotated[
    bool,
    typer.Option("--full", help="Copy all snapshots, tags and branches. Only for Paimon tables."),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="WAREHOUSE",
        help="Path or URI of the warehouse for the copy. It is opened with the metastore "
        "'filesystem', or with 'path' for a Mixed table. Default: the same warehouse.",
    ),
]
DatabaseToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="WAREHOUSE",
        help="Path or URI of the warehouse for the copy. It is opened with the metastore "
        "'filesystem'. Default: the same warehouse.",
    ),
]
KeyValueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="An option of the new table, such as file.compression=zstd. Repeatable.",
    ),
]
PartitionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="COLUMN=TYPE",
        help="The type of a partition column, such as dt=DATE. Repeatable. Default: STRING.",
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
        str, typer.Argument(metavar="DIRECTORY", help="A directory of Parquet or ORC files.")
    ],
    table: NewTableArgument,
    partition: PartitionOption = None,
    option: KeyValueOption = None,
    copy: Annotated[
        bool,
        typer.Option(
            "--copy",
            help="Copy all files into the table. Default: use files in place if possible; the "
            "table then owns them. Files in place need the option --external-root: write `lake "
            "--external-root DIRECTORY migrate`, and pass this option also to all later commands "
            "on the table.",
        ),
    ] = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a Paimon table from a directory of Parquet and ORC files. By default, the table uses
    these files in place if possible.

    Directories such as dt=2024-01-31 become partitions. A file that is used in place belongs to the
    table from then on: compaction and expiry delete it.

    An example: lake migrate /data/events shop.events --partition dt=DATE --copy --dry-run
    """
    report = lake.migrate_directory(
        existing_catalog(context) if dry_run else named_catalog(context),
        source,
        table,
        partition_types=named_once("column", _pairs("--partition", partition)),
        options=named_once("option", _pairs("--option", option)),
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
    table: TableArgument,
    new: NewTableArgument,
    to: ToOption = None,
    full: FullOption = False,
    snapshot: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Copy this snapshot: its number, or for a Mixed table its id or a position such "
            "as main/8.11.",
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(metavar="TAG", help="Copy the snapshot of this tag. Only for Paimon tables."),
    ] = None,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Copy a Paimon or Mixed table to another name or warehouse. By default, only the newest
    snapshot is copied.

    The copy of a Mixed table has the merged rows of one snapshot. To resume an interrupted clone,
    run the command again.

    An example: lake clone shop.orders shop.orders --to s3://backup/warehouse --full
    """
    found = named_table_to_clone(context, table)
    target = _target(context, to, found.cloned_into)
    number = int(snapshot) if snapshot is not None and snapshot.isdecimal() else snapshot
    if to is not None:
        _require_database(target, new.partition(".")[0], to)
    with files_done() as on_progress:
        report = lake.clone_table(
            found,
            target,
            new,
            snapshot=number,
            tag=tag,
            full=full,
            dry_run=dry_run,
            on_progress=on_progress,
        )
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(_sentence(report))


def clone_database(
    context: typer.Context,
    database: Annotated[
        str, typer.Argument(metavar="DATABASE", help="The name of the database to copy.")
    ],
    to: DatabaseToOption = None,
    new: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="DATABASE",
            help="Name of the copy. If this database is missing, it is created, but a dry run "
            "fails. Default: the same name.",
        ),
    ] = None,
    including: Annotated[
        str,
        typer.Option(
            metavar="REGEX",
            help="Copy only tables whose whole name, without the database, matches this "
            "expression.",
        ),
    ] = ".*",
    excluding: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Leave out tables whose whole name, without the database, matches this "
            "expression.",
        ),
    ] = None,
    full: FullOption = False,
    dry_run: DryRun = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Copy the Paimon tables of a database, one after the other; a failed table does not stop the
    next.

    An example: lake clone-database shop --to /backup/warehouse --excluding 'tmp_.*'
    """
    failed: list[TableOutcome[CloneReport]] = []
    source, target = existing_catalog(context), _target(context, to, "paimon")
    if dry_run and to is not None:
        _require_database(target, new or database, to)

    def outcomes() -> Iterator[TableOutcome[CloneReport]]:
        with files_done() as on_progress:
            found = lake.clone_database(
                source,
                database,
                target,
                to=new,
                including=including,
                excluding=excluding,
                full=full,
                dry_run=dry_run,
                on_progress=on_progress,
            )
            for outcome in found:
                failed.extend([outcome] if outcome.error is not None else [])
                yield outcome

    if as_json:
        print_json(outcome.to_dict() for outcome in outcomes())
    else:
        for outcome in outcomes():
            text = (
                outcome_text(context, outcome)
                if outcome.report is None
                else _sentence(outcome.report)
            )
            typer.echo(f"{outcome.table}: {text}")
    if failed:
        raise LakeError(
            f"{counted(len(failed), 'table was', 'tables were')} not cloned; the first is "
            f"{failed[0].table}. To continue: {_after_failures(failed, database, dry_run=dry_run)}"
        )


def _after_failures(
    failed: Sequence[TableOutcome[CloneReport]], database: str, *, dry_run: bool
) -> str:
    """Return the next steps for the tables that were not cloned."""
    taken = [each for each in failed if isinstance(each.error, AlreadyExistsError)]
    others = [each for each in failed if each not in taken]
    steps = []
    if taken:
        steps.append(
            f"{counted(len(taken), 'name is', 'names are')} taken in the target. Drop the table "
            "there, choose another database with --as, or copy the table under another name with "
            "`lake clone`"
        )
    if others and dry_run:
        steps.append("correct the cause, then run the command again")
    elif others:
        names = "|".join(re.escape(each.table.removeprefix(f"{database}.")) for each in others)
        steps.append(
            "correct the cause, then run the command again with --including "
            f"{shlex.quote(names)}, because the cloned tables exist now"
        )
    return "; ".join(steps)


def _sentence(report: CloneReport) -> str:
    return f"{report.what} to {report.target}, {size(report.bytes)}: {report.reason}"


def _target(context: typer.Context, to: str | None, table_format: str | None) -> Any:
    """Return the catalog of the warehouse that --to names; without --to, the catalog of the source.

    ``table_format`` is the format of the tables of --to; None means Paimon. The catalog of --to has
    the default metastore of this format. It gets only the values of --catalog-option that configure
    the storage.
    """
    if to is None:
        return catalog_of_any_format(context)
    from lakeformat.storage import is_storage_option

    given = dict(_pairs("--catalog-option", context.find_root().params.get("catalog_option")))
    options = {key: value for key, value in given.items() if is_storage_option(key)}
    return lake.open_catalog(to, format=table_format, options=options)


def _require_database(target: Any, name: str, to: str) -> None:
    """Raise ``NotFoundError`` if the catalog ``target`` has no database ``name``. The message has
    the command that creates the database.
    """
    if name not in target.list_databases():
        of = [] if isinstance(target, lake.Catalog) else ["--format", "iceberg"]
        # The options --metastore and --uri are not given: --to is a catalog of directories.
        unset = [f"{each}= " for each in ("LAKE_METASTORE", "LAKE_URI") if os.environ.get(each)]
        made = "".join(unset) + shlex.join(["lake", *of, "-w", to, "create-database", name])
        raise NotFoundError(f"database {name!r} does not exist in {to}: create it with `{made}`")


def _pairs(option: str, words: list[str] | None) -> list[tuple[str, str]]:
    found = []
    for word in words or []:
        key, equals, value = word.partition("=")
        if not equals:
            raise InvalidRequestError(f"{option} {word!r} has no '=': write {option} KEY=VALUE")
        found.append((key, value))
    return found
