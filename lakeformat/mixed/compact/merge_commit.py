# SPDX-License-Identifier: Apache-2.0
"""Commits merged tasks to the base store, with the record of merged changes in the same commit.

The commit conflicts if another commit has merged changes of a planned partition, added rows to such
a partition, or changed the files of a task. It also conflicts if the planned snapshot of the change
store was rolled back or has expired. A rollback between the check and the commit is not noticed,
because no commit changes both stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.errors import CommitConflictError
from lakeformat.iceberg.commit.pointer import MetadataPointer
from lakeformat.iceberg.row_changes.row_delta import RowDelta
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import Base, FileChange
from lakeformat.iceberg.write.state_difference import state_difference
from lakeformat.mixed.compact.plan import MixedCompactPlan
from lakeformat.mixed.compact.run import MergedUnit
from lakeformat.mixed.stores.optimized_sequences import (
    OPTIMIZED,
    OptimizedSequences,
    optimized_sequences,
)
from lakeformat.mixed.stores.partition_path import partition_paths
from lakeformat.mixed.stores.record_file import RECORD_MARKS, record_uri, write_record

__all__ = ["MergeCommit"]


@dataclass(slots=True)
class MergeCommit:
    """Makes the snapshot of the base store with the results of all tasks."""

    plan: MixedCompactPlan
    change: MetadataPointer
    """Finds the newest metadata of the change store."""
    made: Sequence[MergedUnit]
    environment: Environment
    records: list[str] = field(default_factory=list)
    """The URIs of the files with the record of merged changes, from all attempts to commit."""

    def __call__(self, base: Base) -> FileChange:
        """Return the change; raise ``CommitConflictError`` if the plan is outdated."""
        merged = self.plan.merged
        known = optimized_sequences(base.loaded, base.parent)
        self._require_unchanged(base, known)
        self._require_changes()
        change = self._files(base)
        if not merged:
            return replace(change, more=OPTIMIZED)
        now = self.environment.now_millis()
        record = OptimizedSequences(
            {**known.sequences, **merged}, {**known.times, **dict.fromkeys(merged, now)}
        )
        uri = record_uri(base.loaded, base.snapshot, self.environment)
        self.records.append(uri)
        statistics = write_record(base.loaded, base.snapshot, record, uri)
        return replace(change, more={**OPTIMIZED, **RECORD_MARKS}, statistics=statistics)

    def _require_unchanged(self, base: Base, known: OptimizedSequences) -> None:
        """Raise ``CommitConflictError`` if another commit merged changes of a planned partition, or
        added rows to it.
        """
        planned = self.plan.state.merged
        partitions = {each.partition for each in self.plan.due} | self.plan.merged_alone.keys()
        for each in sorted(partitions):
            if known.sequences.get(each) != planned.sequences.get(each):
                of_partition = f" of partition {each!r}" if each else ""
                raise self._conflict(f"changes{of_partition} were merged")
        snapshot = self.plan.state.base.snapshot
        if snapshot is None:
            if base.parent is not None:
                raise self._conflict("rows were added to the base store")
            return
        for entries in state_difference(snapshot, base).added:
            found = partitions.intersection(partition_paths(base.loaded.metadata, entries))
            if found:
                place = f"partition {min(found)!r}" if min(found) else "the base store"
                raise self._conflict(f"rows were added to {place}")

    def _require_changes(self) -> None:
        """Raise ``CommitConflictError`` if the planned changes are no longer in the history of the
        change store.
        """
        planned = self.plan.state.change.snapshot
        if planned is None:
            return
        metadata = self.change.load().metadata
        history = metadata.ancestry(metadata.current_snapshot_id)
        if all(each.snapshot_id != planned.snapshot_id for each in history):
            raise self._conflict(
                f"the change store was rolled back, or its snapshot {planned.snapshot_id} with the "
                "planned changes expired"
            )

    def _conflict(self, reason: str) -> CommitConflictError:
        return CommitConflictError(
            f"the merge of changes into the base store of {self.plan.table} was not published: "
            f"{reason} meanwhile. Repeat the call, which plans again"
        )

    def _files(self, base: Base) -> FileChange:
        snapshot = self.plan.state.base.snapshot
        if not self.made:
            change = ChangedFiles(is_recorded=True)(base)
            assert change is not None
            return change
        added = pa.concat_tables([each.entries for each in self.made]) if self.made else None
        if snapshot is None:
            new = [] if added is None else [added]
            change = ChangedFiles(new, is_recorded=True)(base)
            assert change is not None
            return change
        rewritten = [
            unit.of_base[each.path]
            for unit in (made.unit for made in self.made)
            for each in unit.rewritten
            if each.path in unit.of_base
        ]
        remaining = [
            each.unit.of_base[file.path] for each in self.made for file in each.unit.remaining
        ]
        deletes = [table for each in self.made for table in each.deletes if len(table)]
        return RowDelta(
            table=self.plan.table,
            planned=snapshot,
            version=self.plan.pair.base.metadata.format_version,
            removed=rewritten,
            changed=remaining,
            deletes=[pa.concat_tables(deletes)] if deletes else [],
            replaced=sorted({each for made in self.made for each in made.unit.replaced}),
            added=added,
        )(base)
