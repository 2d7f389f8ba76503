# SPDX-License-Identifier: Apache-2.0
"""Creates the two stores of a Mixed table.

The change store is created first, because the base store makes the pair visible. If a process dies
in between, a repeated call completes the pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lakeformat.catalog.iceberg.metastore import Describe, Metastore
from lakeformat.catalog.iceberg.pair_stores import new_change_store
from lakeformat.catalog.names import TableName
from lakeformat.errors import AlreadyExistsError, InvalidRequestError
from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.metadata.partition_terms import partition_terms
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.mixed.batch.base_writer import BASE_BUCKETS
from lakeformat.mixed.key_hash import require_hashable
from lakeformat.mixed.optimizing.settings import AUTO_BUCKETS
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.mixed.stores.log_store import refuse_log_store
from lakeformat.mixed.stores.properties import (
    BASE,
    CHANGE,
    CHANGE_IDENTIFIER,
    FORMAT_MARK,
    PRIMARY_KEY,
    TABLE_STORE,
    UPSERT,
    VERSION_FIELD,
)
from lakeformat.mixed.stores.version_field import new_version_properties
from lakeformat.mixed.table import MixedTable
from lakeformat.mixed.table_properties import require_valid_properties
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import is_list

__all__ = ["make_pair", "require_same_key", "required_keys"]

_WITH_SEQUENCES = 2
_DescribeStore = Callable[[Mapping[str, str]], Describe]
"""A function that takes properties, and returns the ``Describe`` function of a store that has these
properties.
"""


def required_keys(columns: pa.Schema, key: Sequence[str]) -> pa.Schema:
    """Return the columns of a new table, with its key columns as required columns.

    Raise ``InvalidRequestError`` for an empty key, for repeated or unknown key columns, and for a
    key column with a comma or outer spaces in its name. The same error is raised for a column with
    the name of the hidden column of change stores.
    """
    if not key or not is_list(key):
        raise InvalidRequestError(
            f"primary_key is {key!r}, but a Mixed table needs key columns: name them in a list. "
            "Without a key it would be an ordinary Iceberg table: for that, leave out "
            "format='mixed'"
        )
    if len({*key}) < len(key):
        raise InvalidRequestError(
            f"primary_key is {[*key]}, which names a column twice: name each column once"
        )
    if unknown := [name for name in key if name not in columns.names]:
        raise InvalidRequestError(
            f"primary_key names {unknown[0]!r}, but the columns are {', '.join(columns.names)}"
            f"{closest(unknown[0], columns.names)}"
        )
    if unwritable := [name for name in key if "," in name or name != name.strip()]:
        raise InvalidRequestError(
            f"the key column {unwritable[0]!r} has a comma in its name, or a space at its start or "
            f"end. In the property {PRIMARY_KEY!r}, commas separate the names, and spaces around a "
            "name are ignored: rename the column"
        )
    if FILE_OFFSET.name in columns.names:
        raise InvalidRequestError(
            f"a Mixed table cannot have a column {FILE_OFFSET.name!r}, because its change store has"
            " a hidden column of this name: rename the column"
        )
    return pa.schema(
        [field.with_nullable(False) if field.name in key else field for field in columns]
    )


def make_pair(
    metastore: Metastore, name: TableName, key: Sequence[str], describe: _DescribeStore
) -> bool:
    """Create both stores of the Mixed table ``name``, and return True.

    Return False if a table ``name`` exists. If an interrupted call has left an empty change store,
    it becomes the change store of the new table.
    Raise ``AlreadyExistsError`` if the name of the change store belongs to another table.
    """
    if name.table in metastore.tables(name.database):
        return False
    change = new_change_store(name)
    shared = {PRIMARY_KEY: ",".join(key), **FORMAT_MARK}
    given = describe({})("file:///")
    _require_sequences(given.format_version)
    refuse_log_store(given.properties)
    require_valid_properties(given.properties)
    if UPSERT not in given.properties:
        shared[UPSERT] = "true"  # so that Amoro's writers keep keys unique, too
    if not {AUTO_BUCKETS, BASE_BUCKETS} & given.properties.keys():
        shared[AUTO_BUCKETS] = "true"
    shared |= new_version_properties(given.properties, given.schema, key)
    described = describe({**shared, TABLE_STORE: CHANGE})
    require_hashable([each for each in given.schema.fields if each.name in key])
    if not metastore.make_table(change, described):
        found = metastore.pointer(change).load().metadata
        if name.table in metastore.tables(name.database):  # another program has just created it
            return False
        if found.snapshots or (differences := _differences(found, described("file:///"))):
            reason = "it has rows" if found.snapshots else f"it has other {', '.join(differences)}"
            raise AlreadyExistsError(
                f"table '{change}' has the name of the change store, but is not the empty change "
                f"store of the new table ({reason}). If an interrupted call created it, repeat "
                f"that call with the same arguments. Otherwise drop '{change}', or choose another "
                "name for the new table"
            )
    identifier = f"{name.database}.{change.table}"
    base = {**shared, TABLE_STORE: BASE, CHANGE_IDENTIFIER: identifier}
    return metastore.make_table(name, describe(base))


def require_same_key(
    found: IcebergTable | MixedTable, name: str, key: Sequence[str], version: str | None
) -> None:
    """Raise ``AlreadyExistsError`` if an existing table is not the Mixed table that is wanted.

    ``found`` must be a Mixed table with the key columns ``key`` and the version field ``version``;
    None means no version field.
    """
    if isinstance(found, MixedTable) and found.primary_key == [*key]:
        if (there_version := found.properties.get(VERSION_FIELD)) == version:
            return
        raise AlreadyExistsError(
            f"table {name!r} exists, but its property {VERSION_FIELD!r} "
            f"({there_version or 'not set'}) is not the given one ({version or 'not set'}), and "
            "cannot be changed: choose another name, or drop the table"
        )
    there = "a Mixed table" if isinstance(found, MixedTable) else "an Iceberg table"
    more = f" with the key {', '.join(found.primary_key)}" if isinstance(found, MixedTable) else ""
    raise AlreadyExistsError(
        f"table {name!r} exists, but is {there}{more}, not a Mixed table with the key "
        f"{', '.join(key)}: choose another name, or drop the table"
    )


def _differences(found: TableMetadata, wanted: TableMetadata) -> list[str]:
    """Return the parts in which the change store ``found`` differs from the wanted one.

    Properties that only ``found`` has are ignored, because a service may add them.
    """
    columns = [[*map(to_arrow_field, each.schema.fields)] for each in (found, wanted)]
    compared = {
        "format version": found.format_version == wanted.format_version,
        "columns": columns[0] == columns[1],
        "partitions": partition_terms(found) == partition_terms(wanted),
        "properties": wanted.properties.items() <= found.properties.items(),
    }
    return [each for each, is_same in compared.items() if not is_same]


def _require_sequences(format_version: int) -> None:
    if format_version < _WITH_SEQUENCES:
        raise InvalidRequestError(
            f"format_version is {format_version}, but files of that version have no sequence "
            "numbers, by which a Mixed table orders its changes: leave it out, or pass 2"
        )
