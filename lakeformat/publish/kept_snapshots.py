# SPDX-License-Identifier: Apache-2.0
"""Removes expired snapshots from Iceberg metadata, and adds the tags of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA
from lakeformat.iceberg.metadata.snapshot import PAIMON_IDENTITY, TAG, Reference
from lakeformat.iceberg.metadata.snapshot import Snapshot as IcebergSnapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import next_timestamp, remove_snapshots
from lakeformat.iceberg.reachable_files import live_files, manifests_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.publish.own_files import own_files
from lakeformat.storage.location import one_spelling

__all__ = ["names_in", "unneeded_files", "with_kept_snapshots"]


def with_kept_snapshots(metadata: TableMetadata, handle: TableHandle) -> TableMetadata:
    """Return the metadata without expired snapshots, and with the tags of the table.

    A snapshot with a tag is kept. A tag is left out if its snapshot is not published. If nothing
    changes, the result is the same object.
    """
    tags = {tag.name: tag.snapshot for tag in read_tags(handle.storage, handle.layout)}
    ids = {*snapshot_ids(handle.storage, handle.layout)}
    tagged = {snapshot.identity for snapshot in tags.values()}
    expired = [
        each.snapshot_id
        for each in metadata.snapshots
        if each.snapshot_id not in ids and each.summary.get(PAIMON_IDENTITY) not in tagged
    ]
    kept = remove_snapshots(metadata, expired)
    by_identity = {each.summary.get(PAIMON_IDENTITY): each.snapshot_id for each in kept.snapshots}
    references = {
        name: Reference(name, by_identity[snapshot.identity], TAG)
        for name, snapshot in sorted(tags.items())
        if snapshot.identity in by_identity and name != MAIN_BRANCH
    }
    references = {MAIN_BRANCH: metadata.references[MAIN_BRANCH], **references}
    if not expired and references == dict(metadata.references):
        return metadata
    now = next_timestamp(metadata, handle.environment.now_millis())
    return replace(kept, references=references, last_updated_ms=now)


def names_in(metadata: TableMetadata) -> tuple[object, object]:
    """Return the ids of all snapshots, and all branches and tags.

    The result is different after an expiry or a change of tags.
    """
    return {each.snapshot_id for each in metadata.snapshots}, dict(metadata.references)


def unneeded_files(before: LoadedMetadata, after: TableMetadata) -> list[str]:
    """Return the URIs of manifests, manifest lists and delete files that only ``before`` needs.

    Another program may have changed the metadata, so that it names files of the Paimon table. These
    files are left out, because the table deletes its files itself.
    """
    kept_ids = {each.snapshot_id for each in after.snapshots}
    expired = [each for each in before.metadata.snapshots if each.snapshot_id not in kept_ids]
    needed = manifests_of(before, after.snapshots).keys()
    found: dict[str, None] = {}
    for snapshot in expired:
        assert snapshot.manifest_list is not None
        found |= dict.fromkeys(_manifests(before, [snapshot]))
        found[snapshot.manifest_list] = None
    unneeded = [address for address in found if address not in needed]
    deletes = _expired_deletes(before, expired, after.snapshots)
    return own_files(before.metadata, [*deletes, *unneeded])


def _manifests(loaded: LoadedMetadata, snapshots: Iterable[IcebergSnapshot]) -> list[str]:
    try:
        return [*manifests_of(loaded, snapshots)]
    except CorruptTableError:  # another publication has deleted the list
        return []


def _expired_deletes(
    loaded: LoadedMetadata, expired: Iterable[IcebergSnapshot], kept: Sequence[IcebergSnapshot]
) -> list[str]:
    """Return the URIs of published delete files that only expired snapshots need.

    These files belong to the publication alone: the Paimon table stores its deleted rows in index
    files.
    """
    found: dict[str, str] = {}
    for snapshot in expired:
        if snapshot.summary.get("total-delete-files") != "0":
            with suppress(CorruptTableError):  # another publication has deleted its manifests
                found |= _files(loaded, _delete_manifests(loaded, [snapshot]))
    if found:
        for needed in _files(loaded, _delete_manifests(loaded, kept)):
            found.pop(needed, None)
    return [*found.values()]


def _delete_manifests(
    loaded: LoadedMetadata, snapshots: Sequence[IcebergSnapshot]
) -> Mapping[str, pa.Table]:
    listed = manifests_of(loaded, snapshots)
    return {name: row for name, row in listed.items() if row.column("content")[0].as_py() != DATA}


def _files(loaded: LoadedMetadata, manifests: Mapping[str, pa.Table]) -> dict[str, str]:
    """Return the URIs of the live files in manifests, by their normalised form."""
    found = live_files(loaded, manifests.values())
    return {one_spelling(name): each.address for name, each in found.items()}
