# SPDX-License-Identifier: Apache-2.0
"""Writes the manifests and the Iceberg metadata that publish one Paimon snapshot.

The names of manifests and manifest lists contain a new UUID. No reader finds them before the
metadata is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA
from lakeformat.iceberg.metadata.snapshot import PAIMON_IDENTITY
from lakeformat.iceberg.metadata.snapshot import Snapshot as IcebergSnapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.metadata.updates import add_snapshot, following, next_timestamp
from lakeformat.iceberg.write.counts import (
    FileCounts,
    change_summary,
    manifest_summary,
    total_summary,
    totals_in,
)
from lakeformat.iceberg.write.manifest_files import ManifestFiles
from lakeformat.iceberg.write.publish import Base, FileChange, with_first_row_ids
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import read_manifests
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.live import meet
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.publish.deleted_rows import DeletedRows
from lakeformat.publish.entries import FileEntries
from lakeformat.publish.format_version import HAS_ROW_IDS
from lakeformat.publish.state_change import StateChange
from lakeformat.publish.visible_changes import VisibleChanges
from lakeformat.publish.visible_files import marks_of, visible_files

__all__ = ["NextState"]


@dataclass(frozen=True, slots=True)
class NextState:
    """Makes the metadata that publishes one snapshot, based on metadata that was published before.

    ``base`` must already have all schemas of the table.
    """

    handle: TableHandle
    base: LoadedMetadata
    snapshot: Snapshot
    files: ManifestFiles
    entries: FileEntries
    deleted: DeletedRows

    def after_base(self, manifests: pa.Table, before: Snapshot | None = None) -> TableMetadata:
        """Return the metadata of ``base`` with the next snapshot of the table.

        ``manifests`` is the manifest list of ``base``. ``before`` is the Paimon snapshot of
        ``base``; if None, that snapshot is read when needed.
        """
        metadata = self.base.metadata
        parent = metadata.current_snapshot
        assert parent is not None
        delta = self._delta()
        if not len(delta) and self.snapshot.delta_record_count:
            # The table removed manifests that are missing. Their files are not listed, so list all
            # files again.
            started = self._base(parent, MANIFEST_SCHEMA.empty_table())
            every = replace(self._all_of(started), operation="overwrite")
            return self._with(started, every, metadata)
        started = self._base(parent, manifests)
        return self._with(started, self._changed(started, delta, before), metadata)

    def after_expired(self, manifests: pa.Table, before: Snapshot) -> TableMetadata:
        """Return the metadata of ``base`` with a later snapshot that is not the next one.

        The snapshots between the newest one of ``base`` and the later one are not published, for
        example because they have expired. So the new snapshot has no parent, and time travel to an
        earlier time finds no snapshot. The new snapshot keeps the manifests and row ids of
        ``base``. The arguments are those of ``after_base``.
        """
        metadata = self.base.metadata
        parent = metadata.current_snapshot
        assert parent is not None
        started = self._base(parent, manifests)
        started = replace(started, snapshot=replace(started.snapshot, parent_id=None))
        added, removed = VisibleChanges(self.handle, self.snapshot, self.entries).since(before)
        ordered = added.take(_by_partition(added))
        apart = replace(
            metadata,
            references={},
            current_snapshot_id=None,
            snapshot_log=(),
            last_sequence_number=self.snapshot.id - 1,
        )
        return self._with(started, self._change(started, ordered, removed, None, before), apart)

    def on_its_own(self) -> TableMetadata:
        """Return metadata with only this snapshot, in which all files of the table have the status
        ADDED.
        """
        started = self._base(None, MANIFEST_SCHEMA.empty_table())
        return self._with(started, self._all_of(started), self.base.metadata)

    @property
    def written(self) -> list[str]:
        """The URIs of the manifests, manifest lists and delete files that this state has
        written.
        """
        return [*self.files.written, *self.deleted.files.written]

    def discard(self) -> None:
        """Remove the manifests, manifest lists and delete files of an unpublished state."""
        self.files.delete_all_but(())
        self.deleted.files.delete_all()

    def _base(self, parent: IcebergSnapshot | None, manifests: pa.Table) -> Base:
        metadata = self.base.metadata
        made = IcebergSnapshot(
            self.snapshot.id,
            next_timestamp(metadata, self.snapshot.time_millis),
            sequence_number=self.snapshot.id,
            parent_id=None if parent is None else parent.snapshot_id,
            schema_id=metadata.current_schema_id,
            first_row_id=metadata.next_row_id,
        )
        return Base(self.base, parent, manifests, made, self.files)

    def _delta(self) -> ManifestColumns:
        storage, layout = self.handle.storage, self.handle.layout
        delta = manifests_of(storage, layout, self.snapshot, ListKind.DELTA)
        changes = read_manifests(storage, layout, delta)
        return changes.take(meet(changes).left)

    def _changed(self, base: Base, changes: ManifestColumns, before: Snapshot | None) -> FileChange:
        """Return the change for Iceberg readers; files whose rows need a merge are left out."""
        added, removed = VisibleChanges(self.handle, self.snapshot, self.entries).of(changes)
        partitions = self.entries.partitions(changes)
        change = self._change(base, added, removed, partitions, before)
        # In a table with a primary key a compaction makes new rows visible to Iceberg readers. So
        # it is not a "replace", which keeps all rows.
        is_same = self.snapshot.commit_kind is CommitKind.COMPACT
        if is_same and not self.handle.schema.primary_keys and change.operation == "overwrite":
            return replace(change, operation="replace")
        return change

    def _change(
        self,
        base: Base,
        added: ManifestColumns,
        removed: pa.Array,
        partitions: pa.StructArray | None,
        before: Snapshot | None,
    ) -> FileChange:
        parent = base.parent
        assert parent is not None
        rows = self.deleted.after(parent, before, added, removed)
        new = self.entries.added(added)
        if partitions is not None:
            partitions = pa.concat_arrays([partitions, rows.partitions])
        return StateChange(new, removed, rows.deletes, rows.changed, partitions)(base)

    def _all_of(self, base: Base) -> FileChange:
        """Return a change that adds all files, ordered by partition, so that a manifest has few
        partitions.
        """
        live = plan_columns(self.handle, self.snapshot).columns
        shown = live.filter(visible_files(self.handle.schema, live))
        ordered = shown.take(_by_partition(shown))
        rows = self.deleted.of_all(ordered)
        none = pa.array([], pa.string())
        return StateChange(self.entries.added(ordered), none, rows.deletes, none)(base)

    def _with(self, base: Base, change: FileChange, metadata: TableMetadata) -> TableMetadata:
        version = metadata.format_version
        manifests, added_rows = change.manifests, None
        if version >= HAS_ROW_IDS:
            assert metadata.next_row_id is not None
            manifests, added_rows = with_first_row_ids(manifests, metadata.next_row_id)
        made = replace(
            base.snapshot,
            manifest_list=self.files.manifest_list(version, manifests, base.snapshot),
            added_rows=added_rows,
            summary=self._summary(base, change),
        )
        changed = add_snapshot(metadata, made)
        if base.parent is None:
            return replace(changed, last_updated_ms=made.timestamp_ms)
        return following(changed, metadata, self.base.metadata_file, self.snapshot.time_millis)

    def _summary(self, base: Base, change: FileChange) -> Mapping[str, str]:
        before: FileCounts | None = FileCounts()
        if base.parent is not None and len(base.manifests):
            before = totals_in(base.parent.summary)
        assert before is not None  # every published summary has totals
        return {
            "operation": change.operation,
            PAIMON_IDENTITY: self.snapshot.identity,
            **marks_of(self.handle.schema),
            **change_summary(change.added, change.removed, change.partitions),
            **manifest_summary(base.manifests, change.manifests),
            **total_summary(before.plus(change.added).minus(change.removed)),
        }


def _by_partition(files: ManifestColumns) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the positions of the files, with the files of each partition together."""
    places = files.partition.to_arrow().dictionary_encode().indices.to_numpy()
    return np.argsort(places, kind="stable")
