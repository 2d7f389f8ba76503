# SPDX-License-Identifier: Apache-2.0
"""Makes a Mixed table an ordinary Iceberg table, and drops its change store.

The steps are: merge the changes, if the caller wants that; mark the change store; remove the
properties of a base store from the table; drop the change store. A repeated call continues after
the last complete step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from lakeformat.catalog.iceberg.drop_stores import drop_stores, files_to_drop
from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.iceberg.pair_stores import CHANGE_SUFFIX
from lakeformat.catalog.names import TableName
from lakeformat.errors import (
    CorruptTableError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.expire.exclusive_files import ExclusiveFiles
from lakeformat.iceberg.own_files import own_records
from lakeformat.mixed.adopt.detach import (
    DetachReport,
    mark_change_store,
    plan_detachment,
    release_base,
    require_no_rename,
)
from lakeformat.mixed.stores.detaching import DETACHING
from lakeformat.mixed.stores.properties import (
    CHANGE,
    TABLE_STORE,
    change_store_database,
    change_store_name,
)
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.table import MixedTable
from lakeformat.tables.consumers.files import ConsumerFiles

__all__ = ["detach_base", "detach_pair"]

_FULL = "full"


def detach_pair(
    metastore: Metastore,
    name: TableName,
    handle: Callable[[TableName], TableHandle],
    *,
    merge: bool,
    dry_run: bool,
) -> DetachReport:
    """Make the Mixed table ``name`` an Iceberg table; complete an interrupted call.

    Raise ``InvalidRequestError`` if changes are not merged and ``merge`` is False, or while a batch
    or a consumer needs the change store.
    """
    base = handle(name)
    properties = base.load().metadata.properties
    store = change_store_name(properties, str(name))
    if store is None:
        return _complete(metastore, name, handle, dry_run=dry_run)
    change = metastore.beside(name, store, change_store_database(properties))
    metastore.require_removable(change, purge=True)
    pair = StorePair(base, metastore.pointer_beside(change, name))
    merged = False
    if not dry_run:
        pair.load_to_change()  # completes an alter that a process has left
    if merge and not dry_run:
        merged = _merge(pair, str(name))
    planned = plan_detachment(pair, str(name), may_merge=merge and dry_run)
    merged = merged or planned.waiting > 0
    report = _report(metastore, name, change, handle, merged=merged, dry_run=dry_run)
    if dry_run:
        return report
    mark_change_store(planned, str(name))
    release_base(base, planned.loaded.base, str(name))
    drop_stores(metastore, [change], handle, purge=True)
    return report


def _merge(pair: StorePair, name: str) -> bool:
    """Merge the changes of a table into its base store; return True if anything was published.

    One compaction merges at most ``self-optimizing.max-file-count`` files.
    """
    merged = False
    left = plan_detachment(pair, name, may_merge=True).waiting  # a refused call merges nothing
    while MixedTable(pair).compact(strategy=_FULL).snapshot_ids:
        merged = True
        before, left = left, plan_detachment(pair, name, may_merge=True).waiting
        if not 0 < left < before:
            break
    return merged


def detach_base(
    metastore: Metastore,
    name: TableName,
    handle: Callable[[TableName], TableHandle],
    *,
    dry_run: bool,
) -> DetachReport:
    """Make a base store an ordinary Iceberg table, after its change store has been lost.

    The consumers of the table are deleted, because their positions name snapshots of the lost
    store. Raise ``InvalidRequestError`` if the change store exists, or if the table names no change
    store.
    """
    base = handle(name)
    loaded = base.load()
    store = change_store_name(loaded.metadata.properties, str(name))
    if store is None:
        raise InvalidRequestError(
            f"table '{name}' names no change store, so it has no changes to abandon: leave out "
            "abandon_changes (--abandon-changes)"
        )
    change = metastore.beside(name, store, change_store_database(loaded.metadata.properties))
    with suppress(NotFoundError):
        metastore.pointer_beside(change, name).load()
        raise InvalidRequestError(
            f"the changes of '{name}' are not abandoned, because its change store '{change}' "
            "exists: leave out abandon_changes (--abandon-changes), and pass merge=True (--merge) "
            "if it has unmerged changes. If the change store is damaged, move its directory away. "
            f"In a SQL, REST, Hive or Glue catalog, then also drop '{change}'. Then repeat the call"
        )
    require_no_rename(loaded.metadata, str(name))
    if not dry_run:
        records = own_records(base, "consumer")
        for directory in (records.directory, records.old_directory):
            consumers = ConsumerFiles(records.storage, directory)
            for consumer_id in consumers.ids():
                consumers.delete(consumer_id)
        release_base(base, loaded, str(name))
    return DetachReport(
        table=str(name),
        change_store=str(change),
        abandoned=True,
        files=0,
        bytes=0,
        dry_run=dry_run,
    )


def _complete(
    metastore: Metastore,
    name: TableName,
    handle: Callable[[TableName], TableHandle],
    *,
    dry_run: bool,
) -> DetachReport:
    """Complete an interrupted detach: drop the change store that it has left, unless ``dry_run`` is
    True.

    Raise ``InvalidRequestError`` if no such store exists, and ``UnsupportedError`` if ``name`` is
    itself a change store.
    """
    change = TableName(name.database, f"{name.table}{CHANGE_SUFFIX}")
    exists = change.table in metastore.tables(name.database)
    if exists and _is_left_over(metastore, change, name):
        report = _report(metastore, name, change, handle, merged=False, dry_run=dry_run)
        if not dry_run:
            drop_stores(metastore, [change], handle, purge=True)
        return report
    role = handle(name).load().metadata.properties.get(TABLE_STORE)
    if role == CHANGE:
        raise UnsupportedError(
            f"table '{name}' is the change store of a Mixed table: detach the Mixed table by the "
            "name of its base store"
        )
    drop = f"lake --format iceberg drop-table {change} --purge"
    left = (
        f". Table '{change}' exists, but no interrupted detach left it. If you do not need its "
        f"rows, drop it with its files by `{drop}`"
        if exists
        else ""
    )
    raise InvalidRequestError(
        f"table '{name}' names no change store, so there is nothing to detach: it is an ordinary "
        f"Iceberg table{left}"
    )


def _is_left_over(metastore: Metastore, change: TableName, name: TableName) -> bool:
    """Return True if ``change`` is a change store that an interrupted detach of ``name`` has left.

    Such a store has the mark of the detach, or it has no data any more: a drop of the store
    deletes the data before the metadata.
    """
    has_files = not metastore.is_directory or metastore.has_other_files(change)
    try:
        metadata = metastore.pointer_beside(change, name).load().metadata
    except NotFoundError:
        return not has_files
    if metadata.properties.get(TABLE_STORE) != CHANGE:
        return False
    is_marked = metadata.properties.get(DETACHING) == str(name)
    return is_marked or not has_files or not metadata.snapshots


def _report(
    metastore: Metastore,
    name: TableName,
    change: TableName,
    handle: Callable[[TableName], TableHandle],
    *,
    merged: bool,
    dry_run: bool,
) -> DetachReport:
    found = ExclusiveFiles()
    with suppress(NotFoundError, CorruptTableError):  # an interrupted removal has deleted metadata
        found = files_to_drop(metastore, handle(change).load())
    removals = [each for step in found.steps for each in step]
    return DetachReport(
        table=str(name),
        change_store=str(change),
        merged=merged,
        files=len(removals),
        bytes=sum(each.size or 0 for each in removals),
        outside=found.outside,
        dry_run=dry_run,
    )
