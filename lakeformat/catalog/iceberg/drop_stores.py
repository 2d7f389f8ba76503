# SPDX-License-Identifier: Apache-2.0
"""Drops one table, or both stores of a Mixed table, and finds the files to delete with them.

All stores are checked before the first one is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from lakeformat.catalog.iceberg.drop_plan import IcebergDropPlan
from lakeformat.catalog.iceberg.metastore import Metastore
from lakeformat.catalog.names import TableName
from lakeformat.errors import LakeError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.expire.exclusive_files import ExclusiveFiles
from lakeformat.iceberg.expire.select import require_gc
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.purge import files_to_purge
from lakeformat.iceberg.purge import purge as delete_files
from lakeformat.tables.lease import KeepsLeases
from lakeformat.types.sentence import sentence

__all__ = ["drop_stores", "files_to_drop", "plan_drop_stores"]

_log = logging.getLogger(__name__)


def drop_stores(
    metastore: Metastore,
    stores: Sequence[TableName],
    handle: Callable[[TableName], TableHandle],
    *,
    purge: bool,
) -> None:
    """Remove the stores in the given order; with ``purge`` also delete the files of each.

    If a store cannot be dropped, ``InvalidRequestError`` or ``UnsupportedError`` is raised before
    anything is deleted. ``CommitConflictError`` means that another program has changed, renamed or
    recreated a store meanwhile; this store is kept.
    """
    for store in stores:
        metastore.require_removable(store, purge=purge)
    deletes = purge and not metastore.deletes_files
    is_required = purge and not metastore.is_directory  # a directory checks the property itself
    keeps_leases = isinstance(metastore, KeepsLeases)
    known: list[LoadedMetadata | None] = [None] * len(stores)
    if is_required or keeps_leases or metastore.is_directory:
        known = [_loaded(handle(store), is_required=is_required) for store in stores]
    if is_required:
        for loaded in filter(None, known):
            require_gc(loaded.metadata)
    planned = [files_to_purge(each) if deletes and each else None for each in known]
    for store, each, files in zip(stores, known, planned, strict=True):
        metastore.remove_table(store, purge=purge, known=each)
        if files is not None:
            delete_files(files)
    if keeps_leases:
        _forget_leases(metastore, [each.metadata.table_uuid for each in known if each])


def plan_drop_stores(
    metastore: Metastore,
    stores: Sequence[TableName],
    handle: Callable[[TableName], TableHandle],
    *,
    purge: bool,
) -> IcebergDropPlan:
    """Return the plan of ``drop_stores``; nothing is changed.

    Without ``purge`` the metadata need not be readable, because only the catalog is changed.
    """
    for store in stores:
        metastore.require_removable(store, purge=purge)
    loaded = [_loaded(handle(store), is_required=purge) for store in stores]
    found = [files_to_drop(metastore, each) for each in loaded if each and purge]
    removals = [each for files in found for step in files.steps for each in step]
    return IcebergDropPlan(
        table=str(stores[0]),
        change_store=str(stores[1]) if len(stores) > 1 else None,
        location="" if loaded[0] is None else loaded[0].places.uri,
        purge=purge,
        files=len(removals),
        bytes=sum(each.size or 0 for each in removals),
        unknown_sizes=sum(each.size is None for each in removals),
        outside=sum(files.outside for files in found),
        is_whole_directory=purge and metastore.is_directory,
    )


def _loaded(store: TableHandle, *, is_required: bool) -> LoadedMetadata | None:
    try:
        return store.load()
    except LakeError:
        if is_required:
            raise
        return None


def files_to_drop(metastore: Metastore, loaded: LoadedMetadata) -> ExclusiveFiles:
    """Return the files of a table that ``drop_stores`` deletes with ``purge``.

    In a metastore of directories, files outside of the table's directory are counted but not
    deleted. Raise ``UnsupportedError`` if the property ``gc.enabled`` is false.
    """
    found = files_to_purge(loaded)
    if not metastore.is_directory:
        return found
    places = loaded.places
    inside = [
        [
            each
            for each in step
            if each.storage is places.storage and each.path.startswith(f"{places.root}/")
        ]
        for step in found.steps
    ]
    kept = sum(map(len, found.steps)) - sum(map(len, inside))
    return ExclusiveFiles(inside, found.outside + kept)


def _forget_leases(metastore: Metastore, uuids: Sequence[str | None]) -> None:
    for each in filter(None, uuids):
        try:
            metastore.forget_leases(each)
        except LakeError as error:
            _log.warning(
                "the lease of the dropped table with UUID %s was not deleted: %s No action "
                "needed: no other table uses this lease",
                each,
                sentence(error),
            )
