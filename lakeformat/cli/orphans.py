# SPDX-License-Identifier: Apache-2.0
"""``lake orphans``: unreferenced files of a table, or of each table of a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakeformat as lake
from lakeformat.cli.arguments import SaveOption
from lakeformat.cli.copyable import worded
from lakeformat.cli.many_tables import NameArgument, is_database, show_outcomes
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.progress import counting
from lakeformat.cli.save import saving
from lakeformat.cli.warehouse import (
    WarehouseOption,
    existing_catalog_of_any_format,
    named_table_of_any_format,
)
from lakeformat.errors import InvalidRequestError
from lakeformat.types.byte_size import size

if TYPE_CHECKING:
    from lakeformat import OrphanReport, Removal
    from lakeformat.catalog.iceberg import IcebergCatalog

__all__ = ["register"]

EXIT_FAILED = 1
_SHOWN_FILES = 20

RemoveOption = Annotated[
    bool,
    typer.Option("--remove/--dry-run", help="Delete the files, or only list them."),
]
OlderThanOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|AGE",
        help="Only files last changed before '2024-01-31 10:00', in UTC, or '2 d' ago. Default for "
        "a Paimon table: one day before the newest commit, or one day ago if the table has no "
        "commit or --running-since is given. Default for an Iceberg or Mixed table: three days "
        "ago. With --running-since, the default is never later than five minutes before that time.",
    ),
]
RunningSinceOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Start of the oldest running write, such as '2024-01-31 10:00', in UTC: files changed "
        "since then are kept.",
    ),
]
AllowYoungerOption = Annotated[
    bool,
    typer.Option(
        "--allow-younger",
        help="Accept a more recent --older-than: within the last day or, with --running-since, "
        "after the time five minutes before it. Stop all writers first.",
    ),
]
MaxShareOption = Annotated[
    float,
    typer.Option(
        metavar="PART",
        help="Refuse to delete more than 100 files if they are more than this share of a table's "
        "files or bytes.",
    ),
]
ExternalPathsOption = Annotated[
    bool,
    typer.Option(
        "--external-paths",
        help="Also search the directories of the table option data-file.external-paths; no other "
        "table may use them. Only for Paimon tables.",
    ),
]

_FILES = (
    Shown("kind", "kind"),
    Shown("size", "size", size),
    Shown("modified", "last changed"),
    Shown("newest_snapshot", "snapshot at that time"),
    Shown("path", "file"),
)
_TABLES = (
    Shown("orphan_files", "orphans"),
    Shown("orphan_bytes", "size", size),
    Shown("removed_files", "removed"),
    Shown("young_files", "too young"),
)


def register(app: typer.Typer) -> None:
    """Add ``orphans`` to the program."""
    app.command()(orphans)


def orphans(
    context: typer.Context,
    name: NameArgument,
    remove: RemoveOption = False,
    older_than: OlderThanOption = None,
    running_since: RunningSinceOption = None,
    allow_younger: AllowYoungerOption = False,
    max_share: MaxShareOption = 0.5,
    external_paths: ExternalPathsOption = False,
    save: SaveOption = None,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Find files that no snapshot, tag, branch or changelog references; with --remove, delete them.

    An example: lake orphans shop.orders --older-than '3 d'
    """
    how: dict[str, Any] = {
        "dry_run": not remove,
        "older_than": older_than,
        "running_since": running_since,
        "allow_younger": allow_younger,
        "max_share": max_share,
        "external_paths": external_paths,
    }
    with _saving(save) as on_progress:
        how["on_progress"] = on_progress
        if is_database(name):
            _show_database(context, name, how, as_json=as_json)
            return
        table = named_table_of_any_format(context, name)
        if external_paths and "/" not in name:
            _refuse_shared_paths(existing_catalog_of_any_format(context), name)
        _show_table(context, table.remove_orphans(**how), as_json=as_json)


def _show_table(context: typer.Context, report: OrphanReport, *, as_json: bool) -> None:
    _warn(context, report)
    if as_json:
        print_json([report.to_dict()])
    else:
        files = [file.to_dict() for file in report.files[:_SHOWN_FILES]]
        if files:
            print_rows(
                _FILES, {each.key: [file[each.key] for file in files] for each in _FILES}, empty=""
            )
            left_out = report.orphan_files - len(files)
            if left_out:
                typer.echo(f"and {left_out} more; --save FILE writes all of them")
            typer.echo()
        for line in _lines(report):
            typer.echo(worded(context, line))
    if report.failures:
        raise typer.Exit(EXIT_FAILED)


def _lines(report: OrphanReport) -> Iterator[str]:
    found = f" ({size(report.orphan_bytes)})" if report.orphan_files else ""
    yield f"{report.reason}{found}"
    if report.dry_run and report.orphan_files:
        yield "to delete them: --remove"
    yield f"references were read from {report.looked_through}"
    yield f"age limit: last changed before {report.older_than}: {report.older_than_reason}"
    for count, why in (
        (report.young_files, "newer than the age limit, perhaps part of a running write"),
        (
            report.writing_files,
            "their writer also wrote a file after the age limit, so it may still be running",
        ),
        (report.unknown_files, "no known writer gives such names, or their age is unknown"),
        (report.failures, "they could not be deleted: run the command again"),
    ):
        if count:
            yield f"kept {count:,}: {why}"
    yield from (f"could not delete {failure}" for failure in report.failed)
    if report.external_paths_left_out:
        paths = ", ".join(report.external_paths_left_out)
        yield f"not searched: {paths}; if no other table has files there, add --external-paths"


def _warn(context: typer.Context, report: OrphanReport) -> None:
    if report.override is not None:
        typer.secho(f"AGE LIMIT OVERRIDDEN: {report.override}", fg="red", bold=True, err=True)
    if report.objection is not None:
        why = worded(context, report.objection)
        typer.secho(f"--remove would be refused: {why}", fg="red", bold=True, err=True)


def _show_database(
    context: typer.Context, database: str, how: dict[str, Any], *, as_json: bool
) -> None:
    """Search the tables of a database for orphan files and print one line for each table. ``how``
    has the arguments of the search.

    If a table fails, its line has the error. The exit code is 1 if a table failed or a file could
    not be deleted.
    """
    # Arrow takes a while to load, and `lake --help` does not need it.
    from lakeformat.catalog.orphans_of_tables import remove_orphans_of

    catalog = existing_catalog_of_any_format(context)
    names = [f"{database}.{table}" for table in catalog.list_tables(database)]
    if how["external_paths"]:
        for name in names:
            _refuse_shared_paths(catalog, name)
    outcomes = []
    tables: Any = catalog
    for outcome in remove_orphans_of(tables, names, **how):
        if outcome.report is not None:
            _warn(context, outcome.report)
        outcomes.append(outcome)
    show_outcomes(
        context,
        database,
        outcomes,
        _TABLES,
        lambda report: {**report.to_dict(), "outcome": report.reason},
        as_json=as_json,
    )
    if any(each.report is not None and each.report.failures for each in outcomes):
        raise typer.Exit(EXIT_FAILED)


def _refuse_shared_paths(catalog: lake.Catalog | IcebergCatalog, name: str) -> None:
    """Raise ``InvalidRequestError`` if another table may have files in the external paths of the
    Paimon table ``name``.

    The files of the other table could be deleted as orphan files. For the same reason the catalog
    refuses to drop table ``name``.
    """
    if not isinstance(catalog, lake.Catalog):
        return  # the tables themselves refuse external paths
    try:
        catalog.plan_drop_table(name.partition("$")[0])
    except InvalidRequestError as reason:
        why = re.split(r", so (?:dropping|the drop) |: dropping or |\. To drop ", str(reason))[0]
        why = re.sub(r"^cannot drop .*?: its ", "the ", why)
        raise InvalidRequestError(
            f"--external-paths is refused: {why}. To search only the directory of the table, leave "
            "out --external-paths"
        ) from None


@contextmanager
def _saving(save: Path | None) -> Iterator[Callable[[Removal], None] | None]:
    """Yield a function to call with each orphan file.

    The function writes a line of JSON to ``save``, and shows the number of files on a terminal.
    Without ``save`` and without a terminal, None is yielded.
    """
    with ExitStack() as stack:
        written = None if save is None else stack.enter_context(saving(save))
        bar = stack.enter_context(counting("looking for orphan files", "orphan files"))
        if written is None and bar is None:
            yield None
            return

        def on_progress(removal: Removal) -> None:
            if written is not None:
                written(removal)
            if bar is not None:
                bar()

        yield on_progress
