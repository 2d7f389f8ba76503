# SPDX-License-Identifier: Apache-2.0
"""Describes how far the Iceberg metadata is behind the table, for health reports."""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.errors import CorruptTableError, LakeError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import PAIMON_IDENTITY
from lakeformat.iceberg.metadata.snapshot import Snapshot as IcebergSnapshot
from lakeformat.iceberg.schema import Schema
from lakeformat.paimon.handle import TableHandle, with_newest_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot, read_snapshot_if_present
from lakeformat.paimon.table import Table
from lakeformat.publish.place import versions_of
from lakeformat.publish.published_table import require_published_table
from lakeformat.publish.requirements import unpublishable_reason
from lakeformat.publish.targets.entry import Targets
from lakeformat.publish.targets.followers import ReadersLag, entries_of, entry_lag, targets_of
from lakeformat.tables.commit_observer import ObserverLag
from lakeformat.tables.table import offering_arguments
from lakeformat.types.count_text import counted

__all__ = ["lag_of", "publication_lag"]

_UNPUBLISHABLE = (
    "change the schema or the options so that the table can be published, and then run "
    "`lake publish`; or stop publishing with the option 'metadata.iceberg.storage' = 'disabled'"
)


@offering_arguments
def publication_lag(table: Table) -> ObserverLag:
    """Return how many snapshots of a published Paimon table are not yet visible to Iceberg readers.

    The catalogs in which the table is published are checked, too. Raise ``InvalidRequestError`` if
    the table is not published.
    """
    handle = require_published_table(table)
    return lag_of(handle, targets_of(handle))


def lag_of(handle: TableHandle, targets: Targets | None) -> ObserverLag:
    """Return the number of snapshots that readers of the metadata or of a catalog do not see yet.

    All snapshots count as unseen if the metadata is missing or unreadable, or names an earlier
    location of the table. The same holds if the newest snapshot of the metadata was rolled back, or
    if a catalog lacks the table or cannot be checked.
    """
    head = latest_snapshot(handle.storage, handle.layout)
    if head is None:
        return ObserverLag(0)
    found = _lag(handle, head, targets)
    if found is None:
        return ObserverLag(0)
    return ObserverLag(head.id - found.shown, found.finding, found.advice)


def _lag(handle: TableHandle, head: Snapshot, targets: Targets | None) -> ReadersLag | None:
    try:
        versions = versions_of(handle)
        newest = versions.shown()
    except LakeError as reason:
        return ReadersLag(f"the Iceberg metadata of the table cannot be read: {reason}")
    shown = None if newest is None else newest.metadata.current_snapshot
    if newest is None or shown is None:
        failure, advice = _failure(handle, {})
        return ReadersLag(
            f"the table has no Iceberg metadata yet, so readers of Iceberg do not find it{failure}",
            advice=advice,
        )
    if newest.metadata.location.rstrip("/") != versions.location:
        return ReadersLag(
            f"the Iceberg metadata names the files at the earlier address of the table, "
            f"{newest.metadata.location}, where readers do not find them"
        )
    if shown.snapshot_id == head.id and shown.summary.get(PAIMON_IDENTITY) == head.identity:
        return _in_catalogs(handle, newest, targets)
    if shown.snapshot_id < head.id and not _is_replaced(handle, shown):
        missing = counted(head.id - shown.snapshot_id, "snapshot")
        known = {each.schema_id: each for each in newest.metadata.schemas}
        failure, advice = _failure(handle, known)
        return ReadersLag(
            f"the Iceberg metadata is {missing} behind: it shows snapshot {shown.snapshot_id}, and "
            f"the newest is {head.id}{failure}",
            shown.snapshot_id,
            advice,
        )
    is_same = shown.snapshot_id == head.id
    newest_is = "another snapshot with this number" if is_same else f"snapshot {head.id}"
    return ReadersLag(
        f"the Iceberg metadata shows snapshot {shown.snapshot_id}, which a rollback "
        f"removed from the table; the newest is now {newest_is}"
    )


def _is_replaced(handle: TableHandle, shown: IcebergSnapshot) -> bool:
    """Return True if a rollback removed the published snapshot ``shown``, and the table now has
    another snapshot with this number.

    Return False if the table's snapshot file with this number is damaged.
    """
    identity = shown.summary.get(PAIMON_IDENTITY)
    try:
        there = read_snapshot_if_present(handle.storage, handle.layout, shown.snapshot_id)
    except CorruptTableError:
        return False
    return there is not None and identity not in (None, there.identity)


def _failure(handle: TableHandle, known: Mapping[int, Schema]) -> tuple[str, str | None]:
    """Return the cause and advice if the table cannot be published; else an empty text and None."""
    cause = unpublishable_reason(with_newest_schema(handle), known)
    return ("", None) if cause is None else (f"; its publication fails: {cause}", _UNPUBLISHABLE)


def _in_catalogs(
    handle: TableHandle, newest: LoadedMetadata, targets: Targets | None
) -> ReadersLag | None:
    """Return the lag of all late catalogs as one lag; None if no catalog is late.

    If the catalogs cannot be checked, return a lag with the reason.
    """
    try:
        entries = entries_of(handle, targets)
    except LakeError as reason:
        return ReadersLag(f"the catalogs of the Iceberg metadata could not be checked: {reason}")
    found = [lag for entry in entries if (lag := entry_lag(entry, newest)) is not None]
    if not found:
        return None
    return ReadersLag(
        "; ".join(each.finding for each in found),
        min(each.shown for each in found),
        next((each.advice for each in found if each.advice is not None), None),
    )
