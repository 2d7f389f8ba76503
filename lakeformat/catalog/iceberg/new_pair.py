# SPDX-License-Identifier: Apache-2.0
"""Creates the two stores of a Mixed table.

The change store is created first, because the base store makes the pair visible. If a process dies
in between, a repeated call completes the pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lakeformat.catalog.iceberg.metastore import Describe, Metastore
from lakeformat.catalog.iceberg.pair_stores import CHANGE_SUFFIX
from lakeformat.catalog.names import TableName
from lakeformat.errors import AlreadyExistsError, InvalidRequestError
from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.mixed.key_hash import require_hashable
from lakeformat.mixed.stores.properties import (
    BASE,
    CHANGE,
    CHANGE_IDENTIFIER,
    PRIMARY_KEY,
    TABLE_STORE,
    UPSERT,
)
from lakeformat.types.closest import closest

__all__ = ["make_pair", "required_keys"]

_WITH_SEQUENCES = 2
_MARK = {"table-format": "MIXED_ICEBERG"}
_DescribeStore = Callable[[Mapping[str, str]], Describe]
"""Returns the description of a store with these properties."""


def required_keys(columns: pa.Schema, key: Sequence[str]) -> pa.Schema:
    """Return the columns with those of the key as required ones; raise if one does not exist."""
    if not key or len({*key}) < len(key):
        raise InvalidRequestError(
            "a Mixed table needs a key of different columns: name them in primary_key"
        )
    if unknown := [name for name in key if name not in columns.names]:
        raise InvalidRequestError(
            f"primary_key names {unknown[0]!r}, but the columns are {', '.join(columns.names)}"
            f"{closest(unknown[0], columns.names)}"
        )
    return pa.schema(
        [field.with_nullable(False) if field.name in key else field for field in columns]
    )


def make_pair(
    metastore: Metastore, name: TableName, key: Sequence[str], describe: _DescribeStore
) -> bool:
    """Create both stores; return False if the base store exists."""
    if name.table in metastore.tables(name.database):
        return False
    change = TableName(name.database, f"{name.table}{CHANGE_SUFFIX}")
    shared = {PRIMARY_KEY: ",".join(key), **_MARK}
    given = describe({})("file:///")
    _require_sequences(given.format_version)
    if UPSERT not in given.properties:
        shared[UPSERT] = "true"  # so that Amoro's writers keep keys unique, too
    described = describe({**shared, TABLE_STORE: CHANGE})
    wanted = given.schema
    require_hashable([each for each in wanted.fields if each.name in key])
    if not metastore.make_table(change, described):
        found = metastore.pointer(change).load().metadata
        is_ours = (
            found.properties.get(TABLE_STORE) == CHANGE
            and found.properties.get(PRIMARY_KEY) == shared[PRIMARY_KEY]
            and [*map(to_arrow_field, found.schema.fields)] == [*map(to_arrow_field, wanted.fields)]
        )
        if not is_ours or found.snapshots:
            raise AlreadyExistsError(
                f"table '{change}' exists, and is not the empty change store of such a table: "
                "drop it, or choose another name"
            )
    identifier = f"{name.database}.{change.table}"
    base = {**shared, TABLE_STORE: BASE, CHANGE_IDENTIFIER: identifier}
    return metastore.make_table(name, describe(base))


def _require_sequences(format_version: int) -> None:
    if format_version < _WITH_SEQUENCES:
        raise InvalidRequestError(
            f"format_version is {format_version}, but files of that version have no sequence "
            "numbers, by which a Mixed table orders its changes: leave it out, or pass 2"
        )
