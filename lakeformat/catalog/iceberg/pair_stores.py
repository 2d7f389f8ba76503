# SPDX-License-Identifier: Apache-2.0
"""Finds the stores of Mixed tables, so that both are listed and dropped as one table."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Collection, Mapping

from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.names import TableName
from lakeformat.errors import (
    AccessDeniedError,
    CorruptTableError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.mixed.stores.mixed_hive import HIVE_LOCATION
from lakeformat.mixed.stores.properties import (
    CHANGE,
    PRIMARY_KEY,
    TABLE_STORE,
    change_store_database,
    change_store_name,
    is_store_name,
)

__all__ = [
    "CHANGE_SUFFIX",
    "about_half_a_pair",
    "base_store_of",
    "new_change_store",
    "stores_to_drop",
    "without_change_stores",
]

_log = logging.getLogger(__name__)

CHANGE_SUFFIX = "_change_"
"""The usual end of the name of a change store, after the name of its base store."""


def new_change_store(name: TableName) -> TableName:
    """Return the name of the change store of a new Mixed table ``name``.

    Raise ``InvalidRequestError`` if that name would have a slash or backslash.
    """
    change = TableName(name.database, f"{name.table}{CHANGE_SUFFIX}")
    if not is_store_name(change.table):
        raise InvalidRequestError(
            f"'{name}' cannot be the name of a Mixed table, because the name of its change store "
            "would have a '/' or '\\'. Nothing was written: choose a name without these "
            "characters, or rename the table to adopt"
        )
    return change


def without_change_stores(
    metastore: Metastore, database: str, tables: Collection[str]
) -> list[str]:
    """Return the tables of a database without the change stores of Mixed tables.

    A table ``t_change_`` is left out if two conditions hold: the table ``t`` names it as its change
    store, and its own metadata marks it as a change store or cannot be read. Metadata is read only
    if both ``t`` and ``t_change_`` exist.
    """
    names = {*tables}

    def is_hidden(table: str) -> bool:
        base = table.removesuffix(CHANGE_SUFFIX)
        if base == table or base not in names:
            return False
        try:
            found = _change_store(metastore, TableName(database, base))
        except (CorruptTableError, AccessDeniedError, UnsupportedError):
            return False
        name = metastore.stored_name(TableName(database, table))
        return found == name and _may_be_change_store(metastore, name)

    return [table for table in tables if not is_hidden(table)]


def base_store_of(metastore: Metastore, name: TableName) -> TableName | None:
    """Return the base store of a change store named ``<base>_change_``.

    Return None for any other table, and for a change store without a base store.
    """
    properties = _properties(metastore, name)
    base = TableName(name.database, name.table.removesuffix(CHANGE_SUFFIX))
    if properties.get(TABLE_STORE) != CHANGE or base == name:
        return None
    if base.table not in metastore.tables(name.database):
        return None
    return base if _change_store(metastore, base) == name else None


def stores_to_drop(metastore: Metastore, name: TableName) -> list[TableName]:
    """Return the tables to drop for table ``name``: the table itself and then, if it is a base
    store, its change store.

    The change store is last because it can be dropped alone after a crash. If the base store names
    a table that is not its own change store, that table is kept.

    Raise ``UnsupportedError`` if ``name`` is a store of a Mixed-Hive table, or a change store
    ``<base>_change_`` whose base store exists. Raise ``CorruptTableError`` if the change store
    ``<name>_change_`` has damaged metadata. A damaged change store with any other name is kept.
    """
    properties = _properties(metastore, name)
    if (location := properties.get(HIVE_LOCATION)) is not None:
        raise UnsupportedError(
            f"table '{name}' is a store of a Mixed-Hive table of Amoro: its property "
            f"{HIVE_LOCATION!r} is {location!r}. Nothing was dropped: drop the table with Amoro"
        )
    base = base_store_of(metastore, name)
    if base is not None:
        raise UnsupportedError(
            f"table '{name}' is the change store of the Mixed table '{base}', so it is not dropped "
            f"alone: drop '{base}', which drops both stores"
        )
    change = _named_change_store(metastore, name, properties)
    if change is None or not _exists(metastore, change):
        return [name]
    if _is_own(metastore, change, name):
        return [name, change]
    _log.warning(
        "table '%s' is dropped. Its metadata names '%s' as its change store, but '%s' is kept: it "
        "is not a readable change store with the same key, or another table uses it, too. If no "
        "table uses '%s', drop it by its own name",
        name,
        change,
        change,
        change,
    )
    return [name]


def about_half_a_pair(metastore: Metastore, name: TableName, tables: Collection[str]) -> str:
    """Return a hint for the message that table ``name`` does not exist.

    If the change store of ``name`` exists, the hint names the commands that complete or drop the
    Mixed table. Otherwise the hint is "".
    """
    change = TableName(name.database, f"{name.table}{CHANGE_SUFFIX}")
    if change.table not in tables or _properties(metastore, change).get(TABLE_STORE) != CHANGE:
        return ""
    base, left = shlex.quote(str(name)), shlex.quote(str(change))
    return (
        f". Its change store '{change}' is there: a process that creates, drops or renames the "
        "Mixed table is still at work, or died. If it died in a rename, repeat the rename. If it "
        f"died in a creation, complete the table with create_table({str(name)!r}, …, "
        f"format='mixed') or `lake --format iceberg create-table {base} --mixed …`. If it died in "
        f"a drop, drop the change store with drop_table({str(change)!r}, purge=True) or `lake "
        f"--format iceberg drop-table {left} --purge`"
    )


def _is_own(metastore: Metastore, change: TableName, base: TableName) -> bool:
    """Return True if ``change`` is a change store of ``base``, and of no other table.

    A change store named ``<base>_change_`` with the key of ``base`` belongs to ``base``. If
    ``change`` has another name, any table may name it as its change store, so the metadata of all
    tables in the databases of ``base`` and ``change`` is read. Raise ``CorruptTableError`` if
    ``change`` has the usual name and is damaged.
    """
    has_usual_name = change == TableName(base.database, f"{base.table}{CHANGE_SUFFIX}")
    try:
        found = metastore.pointer_beside(change, base).load().metadata.properties
    except NotFoundError:
        return False
    except CorruptTableError as damaged:
        if not has_usual_name:
            return False
        raise CorruptTableError(
            f"table '{base}' is not dropped, because its change store '{change}' is damaged: "
            f"{damaged}. Nothing was deleted. Remove the change store alone with "
            f"drop_table({str(change)!r}) or `lake --format iceberg drop-table {change}`, or in a "
            f"catalog of directories delete its directory. Then drop '{base}'"
        ) from damaged
    key = _properties(metastore, base).get(PRIMARY_KEY)
    if found.get(TABLE_STORE) != CHANGE or found.get(PRIMARY_KEY) != key:
        return False
    others = (
        TableName(database, table)
        for database in {base.database, change.database}
        for table in metastore.tables(database)
    )
    return has_usual_name or not any(
        _change_store(metastore, each) == change for each in others if each != base
    )


def _change_store(metastore: Metastore, name: TableName) -> TableName | None:
    """Return the table that a base store names as its change store.

    Return None if the table ``name`` names no change store, or if the name is not valid.
    """
    return _named_change_store(metastore, name, _properties(metastore, name))


def _named_change_store(
    metastore: Metastore, name: TableName, properties: Mapping[str, str]
) -> TableName | None:
    try:
        found = change_store_name(properties, str(name))
    except CorruptTableError:
        return None
    if found is None:
        return None
    return metastore.beside(name, found, change_store_database(properties))


def _exists(metastore: Metastore, name: TableName) -> bool:
    return metastore.has_database(name.database) and name.table in metastore.tables(name.database)


def _may_be_change_store(metastore: Metastore, name: TableName) -> bool:
    """Return True for a change store, and for a table without properties or with metadata that
    cannot be read.
    """
    properties = _properties(metastore, name)
    return not properties or properties.get(TABLE_STORE) == CHANGE


def _properties(metastore: Metastore, name: TableName) -> Mapping[str, str]:
    """Return the properties of a table; an empty dict if its metadata is damaged, missing, of a
    newer version, or outside of the warehouse.

    So a table with such metadata can be listed and dropped.
    """
    try:
        return metastore.pointer(name).load().metadata.properties
    except (CorruptTableError, InvalidRequestError, NotFoundError, UnsupportedError):
        return {}
