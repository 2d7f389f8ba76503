# SPDX-License-Identifier: Apache-2.0
"""Opens the catalog or table that a command names, with ``--warehouse``, ``--format`` and so on.

``--warehouse`` is given before or after the command, or as LAKE_WAREHOUSE; default: ./warehouse.
The other options are given before the command, or as LAKE_FORMAT, LAKE_METASTORE and LAKE_URI.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import lakeformat as lake
from lakeformat.cli.copyable import copyable
from lakeformat.cli.iceberg_advice import advice_for
from lakeformat.cli.metadata_commands import METADATA_COMMANDS
from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.tables.position import MAIN_BRANCH
from lakeformat.tables.table import Table
from lakeformat.types.sentence import sentence

if TYPE_CHECKING:
    from lakeformat import SchemaChange
    from lakeformat.catalog.iceberg import IcebergCatalog

__all__ = [
    "CatalogOptionOption",
    "ExternalRootOption",
    "FormatOption",
    "MetastoreOption",
    "UriOption",
    "WarehouseOption",
    "alter_table_at_path",
    "catalog_of_any_format",
    "existing_catalog",
    "existing_catalog_of_any_format",
    "is_listed",
    "named_catalog",
    "named_table",
    "named_table_of_any_format",
    "named_table_to_clone",
    "named_warehouse",
    "repairable_catalog",
]

DEFAULT_WAREHOUSE = "warehouse"
_BRANCH = "branch_"
_EXTERNAL_ROOTS = "external-roots"
_STORES = ("base", "change")  # of a Mixed table, named as its system tables

WarehouseOption = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        "-w",
        envvar="LAKE_WAREHOUSE",
        metavar="WAREHOUSE",
        help="Path or URI of the warehouse. Default: ./warehouse",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        envvar="LAKE_FORMAT",
        metavar="FORMAT",
        help="Format of the tables: paimon (the default), or iceberg, also for Mixed tables.",
    ),
]
MetastoreOption = Annotated[
    str | None,
    typer.Option(
        "--metastore",
        envvar="LAKE_METASTORE",
        metavar="KIND",
        help="Kind of catalog: filesystem (the default), or jdbc for a SQL database. With --format "
        "iceberg: path (the default), sql, rest, hive or glue.",
    ),
]
UriOption = Annotated[
    str | None,
    typer.Option(
        "--uri",
        envvar="LAKE_URI",
        metavar="URI",
        help="Address of the metastore. If the address has a password, set LAKE_URI instead.",
    ),
]
CatalogOptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog-option",
        metavar="KEY=VALUE",
        help="An option of the catalog or of its storage, such as s3.region=eu-west-1. Repeatable.",
    ),
]
ExternalRootOption = Annotated[
    list[str] | None,
    typer.Option(
        "--external-root",
        metavar="ADDRESS",
        help="Directory in which tables may have files, besides their own directories. Repeatable.",
    ),
]


def named_warehouse(context: typer.Context) -> str:
    """Return the warehouse typed after the command, before the command, or in the environment.

    The first of these that is given is used; default: ``DEFAULT_WAREHOUSE``. An empty text raises
    ``InvalidRequestError``.
    """
    given: dict[str, str] = {}
    for place in (context.find_root(), context):  # the later one wins
        source, warehouse = place.get_parameter_source("warehouse"), place.params.get("warehouse")
        if source is not None and warehouse is not None:
            given[source.name] = warehouse
    found = given.get("COMMANDLINE", given.get("ENVIRONMENT", DEFAULT_WAREHOUSE))
    if not found.strip():
        raise InvalidRequestError("--warehouse is empty: give a directory or a URI")
    return found


def named_catalog(context: typer.Context) -> lake.Catalog:
    """Return the catalog at ``named_warehouse``.

    A catalog of Iceberg tables raises ``UnsupportedError``.
    """
    return _of_paimon(context, catalog_of_any_format(context))


def catalog_of_any_format(context: typer.Context) -> lake.Catalog | IcebergCatalog:
    """Return the catalog at ``named_warehouse``, opened with the options before the command."""
    given = context.find_root().params
    return lake.open_catalog(
        named_warehouse(context),
        format=given.get("format"),
        metastore=given.get("metastore"),
        uri=given.get("uri"),
        options=_catalog_options(context),
    )


def existing_catalog(context: typer.Context) -> lake.Catalog:
    """Return the catalog of Paimon tables; raise as ``existing_catalog_of_any_format`` does.

    A catalog of Iceberg tables raises ``UnsupportedError``.
    """
    return _of_paimon(context, existing_catalog_of_any_format(context))


def existing_catalog_of_any_format(context: typer.Context) -> lake.Catalog | IcebergCatalog:
    """Return the catalog at ``named_warehouse``.

    ``NotFoundError`` is raised if the directory of the warehouse is missing and no database is
    listed. The method ``require_exists`` of the catalog is also called, and can raise this error.
    """
    catalog = catalog_of_any_format(context)
    _require_warehouse(context, catalog)
    catalog.require_exists()
    return catalog


def repairable_catalog(context: typer.Context) -> lake.Catalog:
    """Return the catalog of Paimon tables, even if its SQL database has lost all its rows.

    ``NotFoundError`` is raised if the warehouse's directory is missing and no database is listed.
    """
    catalog = named_catalog(context)
    _require_warehouse(context, catalog)
    return catalog


def _require_warehouse(context: typer.Context, catalog: lake.Catalog | IcebergCatalog) -> None:
    # This imports Arrow, which `lake --help` does not need.
    from lakeformat.storage import open_storage

    if not isinstance(catalog, lake.Catalog) and not catalog.is_directory:
        return  # its service knows the tables
    storage, root = open_storage(named_warehouse(context), _storage_options(context))
    # All databases of a SQL catalog may have other locations.
    if not storage.directory_exists(root) and not _has_databases(catalog):
        if storage.exists(root):
            raise NotFoundError(f"warehouse {storage.uri(root)} is a file: check --warehouse")
        raise NotFoundError(
            f"warehouse {storage.uri(root)} does not exist: check --warehouse, or start a new one "
            f"with `{copyable(context, 'lake create-database shop')}`"
        )


def _has_databases(catalog: lake.Catalog | IcebergCatalog) -> bool:
    try:
        return bool(catalog.list_databases())
    except NotFoundError:  # the file of a SQLite database is missing
        return False


def named_table(context: typer.Context, name: str) -> lake.Table:
    """Return the Paimon table ``name``; a name with a slash is the path of its directory.

    A table of another format raises ``UnsupportedError``.
    """
    found = named_table_of_any_format(context, name)
    if isinstance(found, lake.Table):
        return found
    raise _refuse_format(context, found)


def named_table_of_any_format(
    context: typer.Context, name: str
) -> lake.Table | lake.IcebergTable | lake.MixedTable:
    """Return the table ``name``; a name with a slash is the path of its directory.

    A missing table raises ``NotFoundError``. A system table of metadata, such as
    ``shop.orders$files``, raises ``InvalidRequestError``. A system table of rows, such as
    ``shop.orders$audit_log``, is returned. At a path, only ``$base`` and ``$change`` of a Mixed
    table are returned; any other system table raises ``InvalidRequestError``.
    """
    found: Any = _table_at(context, name) if "/" in name else _table_in_catalog(context, name)
    has_rows = isinstance(found, Table) and not found.shows_metadata
    return found if has_rows else _refuse_system_table(name)  # type: ignore[no-any-return]


def named_table_to_clone(context: typer.Context, name: str) -> Any:
    """Return the table ``name``.

    Raise ``UnsupportedError`` if ``clone_table`` cannot copy tables of its format.
    """
    found: Any = named_table_of_any_format(context, name)
    if found.cloned_into is None:
        raise _refuse_format(context, found)
    return found


def external_roots(context: typer.Context) -> list[str]:
    """Return the directories of --external-root, in which tables may have files."""
    return [*(context.find_root().params.get("external_root") or ())]


def _catalog_options(context: typer.Context) -> dict[str, str]:
    found = _given_options(context)
    if roots := external_roots(context):
        if _EXTERNAL_ROOTS in found:
            raise InvalidRequestError(
                f"--external-root and --catalog-option {_EXTERNAL_ROOTS} set the same option: use "
                "only --external-root, once for each directory"
            )
        found[_EXTERNAL_ROOTS] = ",".join(roots)
    return found


def _given_options(context: typer.Context) -> dict[str, str]:
    found = {}
    for word in context.find_root().params.get("catalog_option") or []:
        key, equals, value = word.partition("=")
        if not equals:
            raise InvalidRequestError(
                "a --catalog-option has no '=': write --catalog-option KEY=VALUE"
            )
        found[key] = value
    return found


def _storage_options(context: typer.Context) -> dict[str, str]:
    from lakeformat.storage import is_storage_option

    return {key: value for key, value in _given_options(context).items() if is_storage_option(key)}


def _table_at(context: typer.Context, name: str) -> Any:
    pair, _, store = name.rpartition("$")
    if pair and store in _STORES and not os.path.isdir(name):
        return _table_at(context, pair).system_table(store)
    location, branch = _address(context, name)
    return lake.open_table(
        location,
        options=_storage_options(context),
        branch=branch,
        external_roots=external_roots(context),
    )


def alter_table_at_path(context: typer.Context, name: str, changes: Sequence[SchemaChange]) -> None:
    """Change the schema of the table in directory ``name``; no lock of a catalog is taken."""
    from lakeformat.catalog.open_table import alter_table_at

    location, branch = _address(context, name)
    alter_table_at(
        location,
        changes,
        options=_storage_options(context),
        branch=branch,
        external_roots=external_roots(context),
    )


def _address(context: typer.Context, name: str) -> tuple[str, str]:
    """Return the location and the branch of a table from its path, such as ``…/t$branch_dev``."""
    _refuse_options_of_names(context, name)
    folder, slash, last = name.rpartition("/")
    table, *suffixes = last.split("$")
    branch = MAIN_BRANCH
    if suffixes and suffixes[0].startswith(_BRANCH):
        branch = suffixes.pop(0).removeprefix(_BRANCH)
    if suffixes and not os.path.isdir(name):
        _refuse_system_table(name)
    return "$".join((f"{folder}{slash}{table}", *suffixes)), branch


def _refuse_options_of_names(context: typer.Context, name: str) -> None:
    """Raise ``InvalidRequestError`` if catalog options are typed with the path of a table.

    Options from the environment are allowed, because they apply to every command.
    """
    if context.info_name == "clone" and context.params["to"] is None:
        return  # the options describe the target, too
    root = context.find_root()
    of_storage = _storage_options(context)
    typed = [
        f"--{option}"
        for option in ("format", "metastore", "uri")
        if getattr(root.get_parameter_source(option), "name", "") == "COMMANDLINE"
    ] + [f"--catalog-option {key}" for key in _given_options(context) if key not in of_storage]
    if typed:
        raise InvalidRequestError(
            f"{name} is a directory and is opened without a catalog: leave out "
            f"{', '.join(typed)}, or name the table 'database.table'"
        )


def _of_paimon(context: typer.Context, catalog: lake.Catalog | IcebergCatalog) -> lake.Catalog:
    if isinstance(catalog, lake.Catalog):
        return catalog
    command = _command_path(context)
    raise UnsupportedError(
        f"{catalog.location} is a catalog of Iceberg tables, on which `lake {command}` does not "
        f"work: {advice_for(catalog.format, command)}"
    )


def _table_in_catalog(context: typer.Context, name: str) -> Any:
    if "." not in name.strip(".") and os.path.isdir(name):
        raise InvalidRequestError(
            f"{name!r} is not a table name: write 'database.table', or './{name}' for the directory"
        )
    catalog = existing_catalog_of_any_format(context)
    try:
        return catalog.table(name)
    except NotFoundError as reason:
        if "list_tables(" in str(reason) or is_listed(catalog, name):
            raise
        raise NotFoundError(f"{sentence(reason)} `lake tables` lists all tables") from None


def is_listed(catalog: lake.Catalog | IcebergCatalog, name: str) -> bool:
    """Return True if the catalog lists the table.

    If a listed table cannot be opened, the branch in ``name`` or a file of the table is missing.
    """
    try:
        stored = catalog._stored_name(name)
        return stored.table in catalog.list_tables(stored.database)
    except NotFoundError:
        return False


def _refuse_format(
    context: typer.Context, table: lake.IcebergTable | lake.MixedTable
) -> UnsupportedError:
    """Return the error for a command that does not work on tables of this format."""
    command, params = _command_path(context), context.params
    named = params.get("table", params.get("name"))
    return UnsupportedError(
        f"{table.location} is {table.kind}, on which `lake {command}` does not work: "
        f"{advice_for(table.format, command, named or table.location)}"
    )


def _command_path(context: typer.Context) -> str:
    """Return the words of the command after ``lake``, such as ``tag create``."""
    names: list[str] = []
    here: Any = context
    while here.parent is not None:
        names.insert(0, here.info_name or "")
        here = here.parent
    return " ".join(names)


def _refuse_system_table(name: str) -> NoReturn:
    table, _, system_table = name.rpartition("$")
    known = {command.table_name: command.name for command in METADATA_COMMANDS}
    reason = "which this command does not read: in Python, "
    reason += f"table.system_table({system_table!r}).scan() returns its rows"
    if command := known.get(system_table.lower()):
        reason = f"which has a command of its own: `lake {command} {shlex.quote(table)}`"
    raise InvalidRequestError(f"{name} is a system table, {reason}")
