# SPDX-License-Identifier: Apache-2.0
"""Merges the files of one task, without publishing the new files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import FrozenBitMap64

from lakeformat.environment import Environment
from lakeformat.errors import UnsupportedError
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.compact.settings import TARGET_PROPERTY
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.row_changes.delete_entries import FileWithDeletes
from lakeformat.iceberg.row_changes.matched_rows import FileToChange
from lakeformat.iceberg.row_changes.position_files import write_position_files
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.mixed.compact.plan import MergeUnit, MixedCompactPlan
from lakeformat.mixed.file_names import FileKind, FileName
from lakeformat.mixed.read.node_splits import NodeSplit
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile
from lakeformat.mixed.stores.partition_path import partition_paths
from lakeformat.mixed.write.node_writer import NodeWriter

__all__ = ["MergeWork", "MergedUnit", "discard_merged", "merge_work"]

_BUCKETS = "base.file-index.hash-bucket"
_GRANULARITY = "write.delete.granularity"


@dataclass(frozen=True, slots=True)
class MergedUnit:
    """A finished task, with the manifest entries of its new base files and delete files."""

    unit: MergeUnit
    entries: pa.Table
    deletes: tuple[pa.Table, ...]

    @property
    def paths(self) -> list[str]:
        """The URIs of the new files."""
        return [
            path
            for each in (self.entries, *self.deletes)
            for path in each.column("file_path").to_pylist()
        ]


@dataclass(frozen=True, slots=True)
class MergeWork:
    """Merges the tasks of one plan; it can be pickled and sent to another process."""

    state: MixedState
    base: LoadedMetadata
    """The metadata of the base store; its properties set the sizes of new files."""
    environment: Environment

    def __call__(self, unit: MergeUnit) -> MergedUnit:
        """Merge the files of a task; if this raises an error, the new files are deleted."""
        scan = MixedScan(self.state)  # its deletes in memory are those of this task
        writer = NodeWriter(
            self.base,
            self.environment,
            self.state.key,
            unit.nodes,
            option=_BUCKETS,
            kind=FileKind.BASE,
            transaction=unit.transaction,
            within=unit.task.node,
            is_decoded=True,
        )
        try:
            for batch in scan.read(self._split(unit, unit.rewritten)):
                writer.write(batch)
            entries = writer.finish()
            self._require_partition(unit, entries)
            return MergedUnit(unit, entries, tuple(self._deletes(unit, scan)))
        except BaseException:
            writer.discard()
            raise

    def _split(self, unit: MergeUnit, files: Sequence[StoreFile]) -> NodeSplit:
        has_inserts = any(each.in_change for each in files)
        return NodeSplit(
            self.state.snapshot_ids,
            unit.partition,
            unit.task.node,
            tuple(files),
            unit.key_deletes,
            unit.base_versions if has_inserts else (),
        )

    def _deletes(self, unit: MergeUnit, scan: MixedScan) -> list[pa.Table]:
        """Write position deletes for the deleted rows of the files that ``unit`` does not rewrite.

        Return the manifest entries of the new position delete files; an empty list if no row of
        these files was deleted.
        """
        found = [*self._positions(unit, scan)]
        if not found:
            return []
        nodes = {each.path: each.node for each in unit.remaining}
        newest = max(each.transaction for each in unit.remaining)

        def name_of(file: FileWithDeletes, operation: str, count: int) -> str:
            node, unique = nodes[file.path], operation.replace("-", "")
            return str(FileName(node, FileKind.POSITION_DELETE, newest, 0, 0, unique, count))

        return write_position_files(self.base, found, self.environment, name_of=name_of)

    def _positions(
        self, unit: MergeUnit, scan: MixedScan
    ) -> Iterator[tuple[FileToChange, DeletionVector]]:
        for file in unit.remaining:
            if (count := file.split.file.record_count) is None:
                raise UnsupportedError(
                    f"the manifest has no row count for {file.path}, so the deletes of this file "
                    "cannot be turned into positions: compact the table with strategy='full'"
                )
            live = DeletionVector.of_parts(scan.positions(self._split(unit, (file,))))
            deleted = DeletionVector(FrozenBitMap64(range(count)) - live.positions)
            if deleted.cardinality:
                yield unit.of_base[file.path], deleted

    def _require_partition(self, unit: MergeUnit, entries: pa.Table) -> None:
        """Raise ``UnsupportedError`` for rows that the current partition spec puts into another
        partition.
        """
        metadata = self.base.metadata
        found = {*partition_paths(metadata, entries)} if len(entries) else {unit.partition}
        others = found - {unit.partition}
        if others:
            raise UnsupportedError(
                f"rows in {_named(unit.partition)} of {self.state.base.places.uri} belong to "
                f"{_named(min(others))} by the current partition spec, so their changes cannot be "
                "recorded as merged: run a full optimizing with Amoro, which writes all files with "
                "the current spec"
            )


def _named(partition: str) -> str:
    return f"the partition {partition!r}" if partition else "no partition"


def merge_work(plan: MixedCompactPlan, environment: Environment) -> MergeWork:
    """Return the function that merges the tasks of a plan."""
    base = plan.pair.base
    sizes = {TARGET_PROPERTY: str(plan.settings.target_size), _GRANULARITY: "file"}
    metadata = replace(base.metadata, properties={**base.metadata.properties, **sizes})
    sized = replace(base, metadata=metadata)
    return MergeWork(plan.state, sized, environment)


def discard_merged(base: LoadedMetadata, made: MergedUnit) -> None:
    """Delete the new files of a task that is not published."""
    delete_files(base.places, made.paths)
