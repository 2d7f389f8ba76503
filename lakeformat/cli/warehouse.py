"""``--warehouse``: before or after the command, or in LAKE_WAREHOUSE; ./warehouse when absent."""

from __future__ import annotations

import os
from typing import Annotated, NoReturn

import typer

import lakeformat as lake
from lakeformat.cli.metadata_commands import METADATA_COMMANDS
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.layout import MAIN_BRANCH

__all__ = ["WarehouseOption", "existing_catalog", "named_table", "named_warehouse"]

DEFAULT_WAREHOUSE = "warehouse"
_BRANCH = "branch_"

WarehouseOption = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        "-w",
        envvar="LAKE_WAREHOUSE",
        help="Path or URI of the warehouse; ./warehouse when nothing is said.",
    ),
]


def named_warehouse(context: typer.Context) -> str:
    """What was said nearest to the command: after it, before it, in the environment, nowhere."""
    said: dict[str, str] = {}
    for place in (context.find_root(), context):  # the later one wins
        source, warehouse = place.get_parameter_source("warehouse"), place.params.get("warehouse")
        if source is not None and warehouse is not None:
            said[source.name] = warehouse
    found = said.get("COMMANDLINE", said.get("ENVIRONMENT", DEFAULT_WAREHOUSE))
    if not found.strip():
        raise InvalidRequestError("--warehouse is empty: name a directory or a URI")
    return found


def existing_catalog(context: typer.Context) -> lake.Catalog:
    """The catalog of that warehouse, or an error where nothing has ever been made there."""
    from lakeformat.storage import open_storage  # Arrow, which `lake --help` does without

    warehouse = named_warehouse(context)
    storage, root = open_storage(warehouse)
    if not storage.directory_exists(root):
        state = "is a file" if storage.exists(root) else "does not exist"
        raise NotFoundError(f"warehouse {storage.uri(root)} {state}: check --warehouse")
    return lake.open_catalog(warehouse)


def named_table(context: typer.Context, name: str) -> lake.Table:
    """The table of a name in the warehouse or, where there is a slash in it, of a directory."""
    found = _table_at(name) if "/" in name else _table_in_catalog(context, name)
    if isinstance(found, lake.SystemTable):
        _refuse_system_table(name)
    return found


def _table_at(name: str) -> lake.Table:
    folder, slash, last = name.rpartition("/")
    table, *suffixes = last.split("$")
    branch = MAIN_BRANCH
    if suffixes and suffixes[0].startswith(_BRANCH):
        branch = suffixes.pop(0).removeprefix(_BRANCH)
    if suffixes and not os.path.isdir(name):
        _refuse_system_table(name)
    return lake.open_table("$".join((f"{folder}{slash}{table}", *suffixes)), branch=branch)


def _table_in_catalog(context: typer.Context, name: str) -> lake.Table:
    if "." not in name.strip(".") and os.path.isdir(name):
        raise InvalidRequestError(
            f"a table is named 'database.table', got {name!r}; the directory is called './{name}'"
        )
    return existing_catalog(context).table(name)


def _refuse_system_table(name: str) -> NoReturn:
    table, _, system_table = name.rpartition("$")
    known = {command.table_name: command.name for command in METADATA_COMMANDS}
    command = known.get(system_table.lower(), "files")
    raise InvalidRequestError(
        f"{name} is a system table, and each has its own command: `lake {command} {table}`"
    )
