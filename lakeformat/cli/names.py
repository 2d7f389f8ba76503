# SPDX-License-Identifier: Apache-2.0
"""Commands that create, rename, drop and repair databases and tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakeformat as lake
from lakeformat.cli.arguments import DryRun, NameInCatalogArgument, listed
from lakeformat.cli.confirm import Yes, plan_is_wanted
from lakeformat.cli.output import AsJson, Shown, print_json, print_rows
from lakeformat.cli.table_options import option_named
from lakeformat.cli.warehouse import (
    WarehouseOption,
    catalog_of_any_format,
    existing_catalog_of_any_format,
    repairable_catalog,
)
from lakeformat.errors import InvalidRequestError
from lakeformat.tables.named_once import named_once
from lakeformat.tables.report import Report

if TYPE_CHECKING:
    from lakeformat.catalog import DropPlan
    from lakeformat.catalog.iceberg.drop_plan import IcebergDropPlan

__all__ = ["register"]

DatabaseArgument = Annotated[
    str, typer.Argument(metavar="DATABASE", help="The name of the database.")
]
NewNameArgument = Annotated[str, typer.Argument(metavar="NEW", help="The new database.table.")]
Purge = Annotated[
    bool,
    typer.Option(
        "--purge",
        help="Also delete the files of Iceberg and Mixed tables; required if the metastore is "
        "'path'. Files of Paimon tables are always deleted.",
    ),
]

_COLUMN = re.compile(r"(?:`([^`]+)`|(\S+))\s+(.+)", re.DOTALL)
"""Matches a column's name, in backticks if it has spaces, and its type."""

_PLANNED = (
    Shown("table", "table"),
    Shown("directory", "directory"),
    Shown("external_paths", "external paths"),
)
_REPAIRED = (
    Shown("table", "table"),
    Shown("state", "state", lambda text: str(text).replace("_", " ")),
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (create_database, create_table, drop_database, drop_table, rename_table, repair):
        app.command()(command)


def create_database(
    context: typer.Context,
    database: DatabaseArgument,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Do nothing if the database exists.")
    ] = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a database.

    An example: lake create-database shop
    """
    create = partial(catalog_of_any_format(context).create_database, database)
    _, is_new = _created(create, exist_ok=exist_ok)
    if as_json:
        print_json([{"database": database}])
    else:
        typer.echo(f"created {database}" if is_new else f"{database} exists")


def create_table(
    context: typer.Context,
    table: NameInCatalogArgument,
    columns: Annotated[
        list[str],
        typer.Option(
            "--column",
            metavar="'NAME TYPE'",
            help="A column, such as 'id BIGINT' or 'price DECIMAL(10, 2) NOT NULL'. Repeatable.",
        ),
    ],
    primary_key: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="The columns that identify a row.")
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="The partition columns; for Iceberg and Mixed tables also transforms, such as "
            "'day(ts),bucket(16, id)'.",
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of the table, such as bucket=4. Repeatable.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="mixed: add options for a table that both a stream and batches write; only for "
            "Paimon tables with a primary key. --option takes precedence. For a Mixed table use "
            "--mixed.",
        ),
    ] = None,
    comment: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A description of the table.")
    ] = None,
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="With --format iceberg: create a Mixed table, with a base store and a change "
            "store.",
        ),
    ] = False,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Do nothing if the table exists.")
    ] = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a table in a database that exists.

    An example: lake create-table shop.orders --column 'id BIGINT' --primary-key id
    """
    catalog = existing_catalog_of_any_format(context)
    of_format: dict[str, Any] = {"format": "mixed"} if mixed else {}
    if mixed and isinstance(catalog, lake.Catalog):
        raise InvalidRequestError(
            "--mixed creates a table in a catalog of Iceberg tables: write `lake --format iceberg "
            "create-table …`"
        )
    if profile is not None:
        if not isinstance(catalog, lake.Catalog):
            raise InvalidRequestError(
                "--profile chooses options of a Paimon table, but the catalog has Iceberg tables: "
                "leave it out; for a Mixed table write --mixed instead of --profile"
            )
        of_format["profile"] = profile
    create = partial(
        catalog.create_table,
        table,
        [_column(text) for text in columns],
        primary_key=listed(primary_key),
        partition_by=listed(partition_by),
        options=named_once(
            "option", (option_named(text, "--option KEY=VALUE") for text in options or ())
        ),
        comment=comment,
        **of_format,
    )
    made, is_new = _created(create, exist_ok=exist_ok)
    if as_json:
        print_json([{"table": table, "location": made.location, "schema_id": made.schema_id}])
    else:
        typer.echo(f"created {table}" if is_new else f"{table} exists")


def _created(create: Callable[..., Any], *, exist_ok: bool) -> tuple[Any, bool]:
    """Return the result of ``create``, and True if the database or table is new.

    Raise ``AlreadyExistsError`` if it exists and ``exist_ok`` is False.
    """
    try:
        return create(), True
    except lake.AlreadyExistsError:
        if not exist_ok:
            raise
    return create(exist_ok=True), False


def drop_database(
    context: typer.Context,
    database: DatabaseArgument,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Also drop its tables, as `lake drop-table` does.")
    ] = False,
    purge: Purge = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete a database, after confirmation. A database with tables needs --cascade.

    Without --purge, Iceberg and Mixed tables are only removed from their catalog, and their files
    are kept.

    An example: lake drop-database shop --cascade --dry-run
    """
    catalog = existing_catalog_of_any_format(context)
    options: dict[str, Any] = {"cascade": cascade, **_purge_of(catalog, purge)}
    _drop(
        f"database {database}",
        partial(catalog.plan_drop_database, database, **options),
        partial(catalog.drop_database, database, **options),
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


def drop_table(
    context: typer.Context,
    table: NameInCatalogArgument,
    purge: Purge = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Drop a table, after confirmation. A Paimon table is deleted with all its files.

    Without --purge, an Iceberg or Mixed table is only removed from its catalog, and its files are
    kept.

    An example: lake drop-table shop.orders --dry-run
    """
    catalog = existing_catalog_of_any_format(context)
    options = _purge_of(catalog, purge)
    _drop(
        f"table {table}",
        lambda: [catalog.plan_drop_table(table, **options)],
        partial(catalog.drop_table, table, **options),
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


def rename_table(
    context: typer.Context,
    old: NameInCatalogArgument,
    new: NewNameArgument,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Copy the files if the storage cannot rename a directory; stop all writers first. "
            "Only for Paimon tables.",
        ),
    ] = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Rename a table, or move it to another database. Not for Iceberg and Mixed tables if the
    metastore is 'path'.

    An example: lake rename-table shop.orders shop.old_orders
    """
    catalog = existing_catalog_of_any_format(context)
    if isinstance(catalog, lake.Catalog):
        catalog.rename_table(old, new, force=force)
    elif force:
        raise InvalidRequestError(
            "renaming an Iceberg table copies no files, so --force has no meaning: leave it out"
        )
    else:
        catalog.rename_table(old, new)
    if as_json:
        print_json([{"from": old, "to": new}])
    else:
        typer.echo(f"renamed {old} to {new}")


def repair(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A database or a table. Default: all.")
    ] = None,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Finish changes that a crash interrupted, so that the catalog and the files agree.
    Only for Paimon tables.

    An example: lake repair shop.orders
    """
    report = repairable_catalog(context).repair(name).to_dict()
    found = [(table, state) for state, names in report.items() for table in names]
    if as_json:
        print_json({"table": table, "state": state} for table, state in found)
        return
    values = {"table": [table for table, _ in found], "state": [state for _, state in found]}
    print_rows(_REPAIRED, values, empty="nothing to repair")


def _column(text: str) -> tuple[str, str]:
    found = _COLUMN.fullmatch(text.strip())
    if found is None:
        raise InvalidRequestError(
            f"--column {text!r} has no type: write --column 'NAME TYPE', such as 'id BIGINT'"
        )
    return found[1] or found[2], found[3]


def _purge_of(catalog: object, purge: bool) -> dict[str, Any]:
    """Return the argument ``purge`` for a catalog of Iceberg tables; a Paimon catalog has none."""
    return {} if isinstance(catalog, lake.Catalog) else {"purge": purge}


def _drop(
    what: str,
    plan: Callable[[], Sequence[DropPlan | IcebergDropPlan]],
    drop: Callable[[], object],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Print the result of ``plan``. Unless ``dry_run`` is True, ask for confirmation and drop. If
    ``yes`` is True, drop without the question.

    ``what`` is the kind and the name to drop, such as ``table db.t``.
    """
    plans = plan()
    if not as_json:
        _print(what, plans)
    if not dry_run:
        if not plan_is_wanted(what, plans, plan, yes=yes):
            return
        drop()
    if as_json:
        print_json({**each.to_dict(), "dry_run": dry_run} for each in plans)
    else:
        typer.echo("nothing was deleted" if dry_run else f"dropped {what.partition(' ')[2]}")


def _print(what: str, plans: Sequence[DropPlan | IcebergDropPlan]) -> None:
    directories = []
    for plan in plans:
        if isinstance(plan, Report):
            typer.echo(plan.sentence)
        else:
            directories.append(plan)
    if plans and not directories:
        return
    values = {
        "table": [plan.table for plan in directories],
        "directory": [plan.directory for plan in directories],
        "external_paths": ["\n".join(plan.external_paths) for plan in directories],
    }
    print_rows(_PLANNED, values, empty=f"{what} has no table")
    for plan in directories:
        for each in (*(f"and {name}" for name in plan.published), *filter(None, [plan.kept])):
            typer.echo(each)
