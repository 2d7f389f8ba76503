# SPDX-License-Identifier: Apache-2.0
"""Commits changed rows: new delete files and data files.

Each attempt compares the newest snapshot with the planned snapshot. The change conflicts if a
planned file was removed or got deletes that the change would undo. An UPSERT also conflicts with a
new file that may have rows that meet the condition. Any other change conflicts with such a file
only if its isolation is serializable. After a conflict nothing is changed: plan again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.properties import word_property
from lakeformat.iceberg.row_changes.matched_rows import FileToChange
from lakeformat.iceberg.write.counts import FileCounts, partition_count
from lakeformat.iceberg.write.file_changes import added_manifest
from lakeformat.iceberg.write.file_choice import may_meet
from lakeformat.iceberg.write.manifest_merge import merge_manifests
from lakeformat.iceberg.write.new_entries import with_snapshot
from lakeformat.iceberg.write.planned_state import PlannedState, deletes_of
from lakeformat.iceberg.write.publish import Base, FileChange
from lakeformat.iceberg.write.remove_files import WithoutFiles, without_files
from lakeformat.iceberg.write.state_difference import (
    StateDifference,
    entry_ids,
    state_difference,
)
from lakeformat.rows.conditions.filter import PredicateFilter

__all__ = ["RowDelta", "is_serializable"]

_DELETES = 1
"""The value of ``content`` of manifests of delete files, in a manifest list."""


def is_serializable(properties: Mapping[str, str], operation: str) -> bool:
    """Return True if the isolation of an operation is serializable.

    Then rows that another commit adds are a conflict if they may meet the condition of the
    operation. The property ``write.<operation>.isolation-level`` decides: ``serializable``, the
    default, or ``snapshot``. Raise ``InvalidRequestError`` for another value.
    """
    key = f"write.{operation}.isolation-level"
    return word_property(properties, key, "serializable", "snapshot") == "serializable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDelta:
    """The change of rows that a commit publishes; it was planned on an earlier snapshot."""

    table: str
    """The URI of the table, for messages."""
    planned: Snapshot
    version: int
    """The format version of the table when the change was planned."""
    removed: Sequence[FileToChange] = ()
    """The data files to remove; deletes that apply to them alone are removed, too."""
    changed: Sequence[FileToChange] = ()
    """The data files to which new deletes apply."""
    deletes: Sequence[pa.Table] = ()
    """The manifest entries of the new deletes, as one table for each partition spec."""
    replaced: Sequence[str] = ()
    """The ids of older delete files to remove."""
    added: pa.Table | None = None
    """The manifest entries of new data files."""
    unseen: PredicateFilter | None = None
    """If another commit has added rows that may meet this condition, the change conflicts. None
    means that added rows are no conflict.
    """

    def __call__(self, base: Base) -> FileChange:
        """Return the change for the newest snapshot; raise ``CommitConflictError`` if the plan is
        outdated.
        """
        self._plan.require_history(base)
        self._require_no_conflict(base, state_difference(self.planned, base))
        left = self._without_gone(base)
        new = [] if self.added is None or not len(self.added) else [self.added]
        manifests = [
            *(added_manifest(base, each) for each in new),
            *(_delete_manifest(base, each) for each in self.deletes),
            left.manifests,
        ]
        return FileChange(
            self._operation(has_new=bool(new)),
            merge_manifests(base.loaded, pa.concat_tables(manifests), base.files, base.snapshot),
            FileCounts.of([*new, *self.deletes]),
            FileCounts.of(left.removed),
            partition_count([*new, *self.deletes, *left.removed]),
        )

    @property
    def _plan(self) -> PlannedState:
        return PlannedState(f"change of rows of {self.table}", self.planned, self.version)

    def _without_gone(self, base: Base) -> WithoutFiles:
        """Return the manifests without the removed files.

        Manifests of data files are read only if a data file is removed. Raise
        ``CommitConflictError`` if a file to remove is no longer in the snapshot.
        """
        gone = self._gone()
        searched = base.manifests
        if not self.removed:  # no data file is removed
            searched = searched.filter(pc.equal(searched.column("content"), _DELETES))
        if not gone:
            searched = searched.slice(0, 0)
        left = without_files(
            replace(base, manifests=searched), _FilesWithIds(pa.array([*gone], pa.string()))
        )
        found = {each for entries in left.removed for each in entry_ids(entries).to_pylist()}
        if missing := sorted(gone - found):
            raise self._plan.conflict(f"{missing[0].rpartition('@')[0]} was removed")
        is_searched = pc.is_in(
            base.manifests.column("manifest_path"), searched.column("manifest_path")
        )
        kept = base.manifests.filter(pc.invert(is_searched))
        return replace(left, manifests=pa.concat_tables([kept, left.manifests]))

    def _gone(self) -> set[str]:
        found = {f"{each.path}@0" for each in self.removed}
        found |= {delete.id for each in self.removed for delete in each.own_deletes}
        return found | {*self.replaced}

    def _operation(self, *, has_new: bool) -> str:
        if not has_new:
            return "delete"
        return "overwrite" if self.deletes or self.removed else "append"

    def _require_no_conflict(self, base: Base, difference: StateDifference) -> None:
        for file in (*self.removed, *self.changed):
            if f"{file.path}@0" in difference.removed:
                raise self._plan.conflict(f"{file.path} was removed")
        self._require_same_deletes(base, difference.added_deletes)
        if self.unseen is None:
            return
        metadata = base.loaded.metadata
        for entries in difference.added:
            spec = metadata.spec_of(entries.column("spec_id")[0].as_py())
            if pc.any(may_meet(self.unseen, metadata, spec, entries)).as_py():
                raise self._plan.conflict(
                    f"rows were added that may meet the condition {self.unseen.to_text()}"
                )

    def _require_same_deletes(self, base: Base, added: Sequence[pa.Table]) -> None:
        """Raise ``CommitConflictError`` if this change conflicts with deletes of other commits.

        If this change adds data files, every delete of rows in the planned files is a conflict. If
        it only adds deletes, just deletion vectors and position deletes for a single file are
        conflicts: the new deletes would replace them, and their positions would be lost.
        """
        metadata = base.loaded.metadata
        by_spec = ((metadata.spec_of(each.column("spec_id")[0].as_py()), each) for each in added)
        files = (*self.changed, *self.removed) if self.added is not None else self.changed
        for file, delete in deletes_of(files, by_spec, metadata):
            if self.added is not None or delete.data_file is not None:
                raise self._plan.conflict(
                    f"the delete file {delete.path} deleted rows of {file.path}"
                )


@dataclass(frozen=True, slots=True)
class _FilesWithIds:
    ids: pa.Array

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        return pc.is_in(entry_ids(entries), self.ids)


def _delete_manifest(base: Base, entries: pa.Table) -> pa.Table:
    """Write a manifest of new deletes, and return its row for the manifest list.

    All attempts of a commit use the same manifest.
    """
    metadata, snapshot = base.loaded.metadata, base.snapshot
    spec = metadata.spec_of(entries.column("spec_id")[0].as_py())
    writer = ManifestWriter(metadata, spec, of_deletes=True)
    added = partial(with_snapshot, entries, snapshot.snapshot_id)
    return base.files.manifest(("deletes", spec.spec_id), writer, added, snapshot)
