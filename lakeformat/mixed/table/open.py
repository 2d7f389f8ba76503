# SPDX-License-Identifier: Apache-2.0
"""Opens an Iceberg table, or the Mixed table whose base store it is."""

from __future__ import annotations

from collections.abc import Callable

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.mixed.stores.properties import (
    CHANGE,
    CLONING,
    TABLE_STORE,
    change_store_database,
    change_store_name,
)
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.table.read_only import read_only_store
from lakeformat.mixed.table.table import MixedTable
from lakeformat.tables.clone_mark import shown_mark
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["open_stored"]


def open_stored(
    handle: TableHandle, beside: Callable[[str, str], MetadataPointer]
) -> MixedTable | IcebergTable:
    """Return the table that ``handle`` opens.

    For a base store it is the Mixed table, for a change store a read-only table, and for any other
    table an Iceberg table. A Mixed table without a key has no change store, so it is opened as an
    Iceberg table. ``beside`` finds the change store by its name and its database; the database is
    "" if the base store names none. Raise ``UnsupportedError`` for a branch of a Mixed table other
    than main, and for an unfinished clone.
    """
    properties = handle.load().metadata.properties
    if properties.get(TABLE_STORE) == CHANGE:
        return read_only_store(handle, CHANGE)
    name = change_store_name(properties, handle.uri)
    if name is None:
        return IcebergTable(handle)
    if handle.branch != MAIN_BRANCH:
        raise UnsupportedError(
            f"{handle.uri} is a Mixed table, whose stores have the branch {MAIN_BRANCH!r} only, "
            f"not {handle.branch!r}: open it without a branch"
        )
    database = change_store_database(properties)
    if CLONING in properties:
        raise UnsupportedError(
            f"{handle.uri} is an unfinished clone{shown_mark(properties[CLONING])}: repeat the "
            "clone, which completes it, or drop the table"
        )
    table = MixedTable(StorePair(handle, beside(name, database)))
    table.snapshots()
    return table
