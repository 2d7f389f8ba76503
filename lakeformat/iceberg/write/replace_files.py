# SPDX-License-Identifier: Apache-2.0
"""Replaces data files by new files with the same rows, unless their rows have changed.

A compaction gives the new files the sequence number of the snapshot that it read. So equality
deletes that are published in the meantime still apply to their rows. Position deletes name the old
files, so new position deletes are a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest import EQUALITY_DELETES, live_entries, read_entries
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.delete_index import EVERYWHERE
from lakeformat.iceberg.read.entry_columns import is_unpartitioned, scopes
from lakeformat.iceberg.read.planned_files import PlannedFile
from lakeformat.iceberg.write.counts import FileCounts, partition_count
from lakeformat.iceberg.write.file_changes import added_manifest
from lakeformat.iceberg.write.file_choice import FilesNamed
from lakeformat.iceberg.write.manifest_merge import merge_manifests
from lakeformat.iceberg.write.planned_state import PlannedState, deletes_of
from lakeformat.iceberg.write.publish import Base, FileChange
from lakeformat.iceberg.write.remove_files import without_files

__all__ = ["ReplaceFiles"]

_DELETES = 1
"""The value of ``content`` by which a manifest list marks a manifest of delete files."""
_PUFFIN = "PUFFIN"


@dataclass(frozen=True, kw_only=True)
class ReplaceFiles:
    """Replaces data files by new files with the same rows, in a new snapshot."""

    name: str
    """The work and its table in words, for error messages."""
    planned: TableMetadata
    snapshot: Snapshot
    """The snapshot in which the files were read."""
    files: Sequence[PlannedFile]
    added: pa.Table
    """The manifest entries of the new files."""
    moved: pa.Table | None
    """The entries in ``added`` whose files replace files of another partition spec, or None."""

    def __call__(self, base: Base) -> FileChange:
        """Return the change for the newest snapshot.

        Raise ``CommitConflictError`` if an old file was removed, or if new deletes apply only to
        the old or only to the new files.
        """
        self._plan.require_history(base)
        of_deletes = pc.equal(base.manifests.column("content"), _DELETES)
        deletes = base.manifests.filter(of_deletes)
        self._require_no_new_deletes(base, deletes)
        data = replace(base, manifests=base.manifests.filter(pc.invert(of_deletes)))
        left = without_files(data, FilesNamed(self._paths))
        removed = sum(map(len, left.removed))
        if removed != len(self.files):
            count = len(self.files) - removed
            raise self._plan.conflict(
                f"{count} of the {len(self.files)} files to replace "
                f"{'was' if count == 1 else 'were'} removed"
            )
        unneeded = _UnneededDeletes(self._paths, self._oldest(left.manifests))
        kept = without_files(
            replace(base, manifests=deletes), unneeded, variant=unneeded.least_number
        )
        added = [added_manifest(base, self._numbered)] if len(self.added) else []
        manifests = pa.concat_tables([*added, left.manifests, kept.manifests])
        gone = [*left.removed, *kept.removed]
        return FileChange(
            "replace",
            merge_manifests(base.loaded, manifests, base.files, base.snapshot),
            FileCounts.of([self.added]),
            FileCounts.of(gone),
            partition_count([self.added, *gone]),
        )

    @cached_property
    def _plan(self) -> PlannedState:
        return PlannedState(self.name, self.snapshot, self.planned.format_version)

    @cached_property
    def _paths(self) -> pa.Array:
        return pa.array([each.path for each in self.files], pa.string())

    @cached_property
    def _numbered(self) -> pa.Table:
        return _with_number(self.added, self.snapshot.sequence_number)

    def _require_no_new_deletes(self, base: Base, deletes: pa.Table) -> None:
        """Raise ``CommitConflictError`` if a newer delete applies to an old file but would not
        apply to the new file, or the other way round.
        """
        newer = [*_newer(base, deletes, self.snapshot.sequence_number)]
        for file, delete in deletes_of(self.files, newer, base.loaded.metadata):
            if not (delete.equality_ids and self._follows(file, delete.scope)):
                raise self._plan.conflict(
                    f"the delete file {delete.path} deleted rows of {file.path}"
                )
        if self.moved is not None:
            self._require_none_in_new_partitions(set(scopes(self.moved)), newer)

    def _require_none_in_new_partitions(
        self, places: set[str], deletes: Iterable[tuple[PartitionSpec, pa.Table]]
    ) -> None:
        """Raise ``CommitConflictError`` if one of ``deletes`` is an equality delete in one of the
        partitions ``places`` of the new files.

        Such a delete does not apply to old files of another partition spec, but would apply to the
        new files.
        """
        for spec, entries in deletes:
            if is_unpartitioned(spec):  # such a delete applies to the old files, too
                continue
            equality = entries.filter(pc.equal(entries["content"], EQUALITY_DELETES))
            for path, place in zip(
                equality["file_path"].to_pylist(), scopes(equality), strict=True
            ):
                if place in places:
                    raise self._plan.conflict(
                        "equality deletes that would apply to the new files, but not to old files "
                        f"of another partition spec, were added in {path}"
                    )

    def _follows(self, file: PlannedFile, scope: str) -> bool:
        """Return True if an equality delete that applies to an old file also applies to the new
        files.

        ``scope`` is a text that identifies the partition spec and partition of the delete, or
        ``EVERYWHERE``.
        """
        return scope == EVERYWHERE or file.spec_id == self.planned.default_spec_id

    def _oldest(self, manifests: pa.Table) -> int:
        """Return the smallest sequence number of live data files."""
        numbers = manifests.column("min_sequence_number").to_pylist()
        return min([self.snapshot.sequence_number, *(number or 0 for number in numbers)])


@dataclass(frozen=True, slots=True)
class _UnneededDeletes:
    """Chooses delete files that no longer apply to any data file.

    These are deletes older than all data files, and the deletion vectors of removed files.
    """

    removed: pa.Array
    least_number: int

    def mask(self, metadata: TableMetadata, spec: PartitionSpec, entries: pa.Table) -> pa.Array:
        is_older = pc.less(entries.column("sequence_number"), self.least_number)
        is_vector = pc.equal(entries.column("file_format"), _PUFFIN)
        of_removed = pc.is_in(entries.column("referenced_data_file"), self.removed)
        return pc.or_(is_older, pc.and_(is_vector, of_removed))


def _newer(
    base: Base, manifests: pa.Table, number: int
) -> Iterator[tuple[PartitionSpec, pa.Table]]:
    """Yield the live delete files above a sequence number, as one table for each partition spec."""
    is_newer = pc.greater(pc.fill_null(manifests.column("sequence_number"), 0), number)
    some = manifests.filter(is_newer)
    metadata = base.loaded.metadata
    for spec_id, entries in read_entries(base.loaded.places, metadata, some).items():
        live = live_entries(entries)
        found = live.filter(pc.greater(live.column("sequence_number"), number)).combine_chunks()
        if len(found):
            yield metadata.spec_of(spec_id), found


def _with_number(entries: pa.Table, number: int) -> pa.Table:
    """Return new entries with the sequence number ``number``, so that they do not inherit one."""
    place = entries.schema.get_field_index("sequence_number")
    numbers = pa.repeat(pa.scalar(number, pa.int64()), len(entries))
    return entries.set_column(place, entries.schema.field(place), numbers)
