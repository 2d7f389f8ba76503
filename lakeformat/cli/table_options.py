# SPDX-License-Identifier: Apache-2.0
"""``lake set-option`` and ``lake unset-option``: change the options of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import lakeformat as lake
from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import (
    WarehouseOption,
    alter_table_at_path,
    existing_catalog_of_any_format,
    named_table_of_any_format,
)
from lakeformat.tables.named_once import named_once

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lakeformat import SchemaChange

__all__ = ["option_named", "register"]

SettingsArgument = Annotated[
    list[str],
    typer.Argument(metavar="KEY=VALUE", help="An option and its value, such as bucket=4."),
]
KeysArgument = Annotated[
    list[str], typer.Argument(metavar="KEY", help="An option, such as snapshot.time-retained.")
]
"""The keys of options; for Iceberg and Mixed tables, of table properties."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("set-option")(set_option)
    app.command("unset-option")(unset_option)


def option_named(text: str, how: str) -> tuple[str, str]:
    """Return the key and the value of a text such as ``bucket=4``.

    Without ``=``, ``InvalidRequestError`` is raised; its message has the syntax ``how``.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise lake.InvalidRequestError(f"{text!r} has no '=': write {how}, such as bucket=4")
    return key.strip(), value.strip()


def set_option(
    context: typer.Context,
    table: TableArgument,
    settings: SettingsArgument,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Set options (of an Iceberg or Mixed table: properties). If one is refused, none is set.

    `lake options` lists the options that are set. Existing files do not change. In a Mixed table
    both stores get the properties.

    An example: lake set-option shop.orders snapshot.time-retained='7 d'
    """
    wanted = [option_named(text, "KEY=VALUE") for text in settings]
    changes = [lake.set_option(*each) for each in named_once("option", wanted).items()]
    _alter(context, table, changes, [key for key, _ in wanted], as_json=as_json)


def unset_option(
    context: typer.Context,
    table: TableArgument,
    keys: KeysArgument,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Reset options of a table to their defaults.

    An example: lake unset-option shop.orders snapshot.time-retained
    """
    _alter(context, table, [lake.remove_option(key) for key in keys], keys, as_json=as_json)


def _alter(
    context: typer.Context,
    table: str,
    changes: Sequence[SchemaChange],
    keys: Sequence[str],
    *,
    as_json: bool,
) -> None:
    before = _options(named_table_of_any_format(context, table))
    if "/" in table:
        alter_table_at_path(context, table, changes)
    else:
        existing_catalog_of_any_format(context).alter_table(table, *changes)
    altered = named_table_of_any_format(context, table)
    was, now = ({key: found.get(key) for key in keys} for found in (before, _options(altered)))
    if as_json:
        number = altered.schema_id
        print_json([{"table": table, "schema_id": number, "options": now, "before": was}])
        return
    for key in now:
        typer.echo(f"option {key!r} of {table}: {_shown(was[key])} before, {_shown(now[key])} now")


def _options(table: Any) -> Mapping[str, str]:
    """Return the options of a Paimon table, or the properties of a table of another format;
    credentials are hidden.
    """
    found: Mapping[str, str]
    found = table.properties if hasattr(table, "properties") else table.schema.options
    from lakeformat.tables.credential_options import shown_options

    return shown_options(found)


def _shown(value: str | None) -> str:
    return "not set" if value is None else repr(value)
