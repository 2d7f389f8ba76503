# SPDX-License-Identifier: Apache-2.0
"""The table properties of the stores of a Mixed table: their role, the other store and the key."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import CorruptTableError

__all__ = [
    "BASE",
    "CHANGE",
    "CHANGE_IDENTIFIER",
    "CLONING",
    "FORMAT_MARK",
    "KEPT_UPSERT",
    "OPTIONAL_KEYS",
    "PRIMARY_KEY",
    "RENAMED_TO",
    "REPEATED_KEYS",
    "TABLE_FORMAT",
    "TABLE_STORE",
    "UPSERT",
    "VERSION_FIELD",
    "change_store_database",
    "change_store_name",
    "is_keyed_store",
    "is_store_name",
]

TABLE_STORE = "mixed-format.table-store"
"""The role of a store: ``base`` or ``change``."""
PRIMARY_KEY = "mixed-format.primary-key-fields"
"""The names of the key columns, separated by commas."""
CHANGE_IDENTIFIER = "mixed-format.change.identifier"
"""The name of the change store, as ``database.table``; only in a base store with a key."""
RENAMED_TO = "lake.renamed-to"
"""The name that an interrupted rename gives the table, as ``database.table``; only in a base
store."""
TABLE_FORMAT = "table-format"
"""The mark of a store for programs that read only properties: ``MIXED_ICEBERG``."""
CLONING = "lake.cloning"
"""The source of an unfinished clone. Both stores of the clone have this property; until it is
removed, the clone cannot be opened.
"""
UPSERT = "write.upsert.enabled"
"""With false, a written row does not delete older rows of its key; default: true (false in
Amoro)."""
REPEATED_KEYS = "lake.repeated-keys"
"""``true`` if ``UPSERT`` was not always ``true``, so that a key can have several rows."""
VERSION_FIELD = "lake.version-field"
"""The name of the version field: of two rows with one key, the row with the larger value is the
newer one. Amoro does not know this property.
"""
FORMAT_MARK = {TABLE_FORMAT: "MIXED_ICEBERG"}
OPTIONAL_KEYS = "lake.optional-key-field-ids"
"""The ids, separated by commas, of the key columns that were optional before the table was adopted.

Only an adopted base store has it.
"""
KEPT_UPSERT = "lake.kept-upsert"
"""``true`` in an adopted base store that had the property ``UPSERT`` before."""
BASE, CHANGE = "base", "change"


def is_keyed_store(properties: Mapping[str, str]) -> bool:
    """Return True for the properties of a store of a Mixed table with a key."""
    return properties.get(TABLE_STORE) == CHANGE or CHANGE_IDENTIFIER in properties


def change_store_name(properties: Mapping[str, str], uri: str) -> str | None:
    """Return the name of the change store that a base store names; None for any other table.

    A Mixed table without a key has only a base store, which is a plain Iceberg table. Raise
    ``CorruptTableError`` for an invalid name.
    """
    identifier = properties.get(CHANGE_IDENTIFIER)
    if properties.get(TABLE_STORE) != BASE or identifier is None:
        return None
    name = identifier.rpartition(".")[2]
    if not is_store_name(name):
        raise CorruptTableError(
            f"{uri} is the base store of a Mixed table, but its property {CHANGE_IDENTIFIER!r} is "
            f"{identifier!r}, which is not the name of a table: correct the property, with the "
            "program that changed it, to the name of the change store"
        )
    return name


def is_store_name(name: str) -> bool:
    """Return True if ``name``, without a database, can be the name of a change store."""
    return bool(name) and "/" not in name and "\\" not in name


def change_store_database(properties: Mapping[str, str]) -> str:
    """Return the database of the change store, as the base store names it; "" if it names none."""
    return properties.get(CHANGE_IDENTIFIER, "").rpartition(".")[0]
