# SPDX-License-Identifier: Apache-2.0
"""Plans the compaction of delete files; only metadata is read.

A delete file is dangling if it applies to no live data file: then the compaction removes it. The
position deletes of a partition are rewritten if fewer files, or deletion vectors, could store them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.data_file import DeleteFile
from lakeformat.iceberg.read.entry_columns import scopes
from lakeformat.iceberg.read.file_splits import plan_splits
from lakeformat.iceberg.read.plan import TableState, plan_deletes, plan_files
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.row_changes.matched_rows import FileToChange
from lakeformat.iceberg.row_changes.position_files import is_by_file
from lakeformat.iceberg.write.state_difference import entry_ids

__all__ = ["DeletePlan", "plan_delete_files"]

_WITH_VECTORS = 3
"""The first format version with deletion vectors."""


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """The delete files of one snapshot that are replaced or removed."""

    loaded: LoadedMetadata
    snapshot: Snapshot | None
    scan: Scan
    """Reads the positions of deleted rows."""
    delete_files: int
    """The number of all live delete files of the snapshot."""
    dangling: frozenset[str]
    """The ids of the delete files that apply to no data file."""
    files: tuple[FileToChange, ...]
    """The data files whose delete files are replaced."""
    with_keys: bool
    """True if equality deletes are also replaced by position deletes."""

    @property
    def replaced(self) -> frozenset[str]:
        """The ids of the delete files that are replaced by new ones."""
        return frozenset(each.id for file in self.files for each in self.deletes_of(file))

    def deletes_of(self, file: FileToChange) -> Iterable[DeleteFile]:
        """Return the delete files of ``file`` that are replaced.

        Equality delete files are replaced only if ``with_keys`` is True.
        """
        return (each for each in file.split.deletes if self.with_keys or not each.equality_ids)

    def numbers(self) -> dict[str, int]:
        """Return the sequence number of the new delete files of each partition.

        The key is ``FileToChange.scope``, a text for the partition and its spec. The number is that
        of the newest replaced delete file, so that the new files apply to the same data files.
        """
        found: dict[str, int] = {}
        for file in self.files:
            for each in self.deletes_of(file):
                found[file.scope] = max(found.get(file.scope, 0), each.sequence_number)
        return found


def plan_delete_files(
    handle: TableHandle, *, convert_equality: bool, rewrite_all: bool
) -> DeletePlan:
    """Plan the compaction of delete files for the newest snapshot of the branch."""
    loaded = handle.load()
    metadata = loaded.metadata
    head = metadata.references.get(handle.branch)
    snapshot = None if head is None else metadata.snapshot(head.snapshot_id)
    state = TableState(loaded.places, metadata, snapshot, metadata.schema)
    deletes = plan_deletes(state)
    ids = {each for entries in deletes for each in entry_ids(entries).to_pylist()}
    files = [*_files_with_deletes(state, deletes)]
    applied = {delete.id for file in files for delete in file.split.deletes}
    choice = _Choice(
        metadata.format_version >= _WITH_VECTORS,
        is_by_file(metadata.properties),
        convert_equality,
        rewrite_all,
    )
    return DeletePlan(
        loaded,
        snapshot,
        Scan(state),
        len(ids),
        frozenset(ids - applied),
        tuple(choice.due(files)),
        convert_equality,
    )


def _files_with_deletes(state: TableState, deletes: tuple[pa.Table, ...]) -> Iterator[FileToChange]:
    if not deletes:
        return
    plan = replace(plan_files(state), deletes=deletes)
    splits = {each.file.path: each for each in plan_splits(state, plan) if each.deletes}
    for entries in plan.entries:
        spec_id = entries.column("spec_id")[0].as_py()
        partitions = entries.column("partition").combine_chunks()
        paths = entries.column("file_path").to_pylist()
        for place, (path, scope) in enumerate(zip(paths, scopes(entries), strict=True)):
            if path in splits:
                partition = partitions.slice(place, 1)
                yield FileToChange(splits[path], spec_id, scope, partition)


@dataclass(frozen=True, slots=True)
class _Choice:
    has_vectors: bool
    is_by_file: bool
    convert_equality: bool
    rewrite_all: bool

    def due(self, files: Iterable[FileToChange]) -> Iterator[FileToChange]:
        """Yield the data files whose delete files are replaced.

        Data files of one partition may share a delete file, so each partition is chosen or left out
        as a whole. Of a chosen partition, all data files that have deletes to replace are yielded.
        """
        by_scope: dict[str, list[FileToChange]] = {}
        for file in files:
            by_scope.setdefault(file.scope, []).append(file)
        for group in by_scope.values():
            if self._is_due(group):
                yield from filter(self._has_some, group)

    def _is_due(self, group: list[FileToChange]) -> bool:
        deletes = {each.id: each for file in group for each in file.split.deletes}.values()
        by_position = [each for each in deletes if not each.equality_ids]
        if self.convert_equality and len(by_position) < len(deletes):
            return True
        if self.has_vectors:
            return any(not each.is_vector for each in by_position)
        new = sum(map(self._has_some, group)) if self.is_by_file else 1
        return len(by_position) > (0 if self.rewrite_all else new)

    def _has_some(self, file: FileToChange) -> bool:
        """Return True if a data file has deletes to replace.

        A deletion vector alone needs no replacement. An equality delete is replaced only with
        ``convert_equality``.
        """
        kept = not self.convert_equality
        replaced = [each for each in file.split.deletes if not (kept and each.equality_ids)]
        return any(not (self.has_vectors and each.is_vector) for each in replaced)
