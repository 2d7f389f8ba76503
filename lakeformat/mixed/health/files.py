# SPDX-License-Identifier: Apache-2.0
"""Counts the files of both stores that a read of the newest state needs, by partition."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lakeformat.iceberg.health.health_report import DataFileFacts, DeleteFacts, PartitionFacts
from lakeformat.iceberg.read.data_file import DeleteFile
from lakeformat.iceberg.read.plan import plan_files
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.optimizing.settings import OptimizingSettings
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile, base_files, change_files

__all__ = ["LiveFiles"]


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """The files with rows, and the deletes of the change store that are not merged yet."""

    settings: OptimizingSettings
    spec_id: int
    data: Sequence[StoreFile]
    key_deletes: Sequence[StoreFile]

    @classmethod
    def of(cls, state: MixedState, settings: OptimizingSettings) -> LiveFiles:
        """Return the files of a state."""
        changes = [
            each
            for each in change_files(state.change, plan_files(state.change))
            if each.sequence > state.merged.sequence(each.partition)
        ]
        inserts = [each for each in changes if each.kind is FileKind.INSERT]
        data = [*base_files(state.base, plan_files(state.base)), *inserts]
        deletes = [each for each in changes if each.kind is FileKind.CHANGE_DELETE]
        return cls(settings, state.base.metadata.default_spec_id, data, deletes)

    def facts(self, partitions_due: int) -> DataFileFacts:
        """Return the numbers about files with rows."""
        small = [each for each in self.data if self._is_small(each)]
        return DataFileFacts(
            files=len(self.data),
            rows=_rows(self.data),
            partitions=len({each.partition for each in self.data}),
            target_file_size=self.settings.target_size,
            small_files=len(small),
            small_bytes=_bytes(small),
            partitions_due=partitions_due,
        )

    def deletes(self) -> DeleteFacts:
        """Return the numbers about deletes: those of the base store, and the keys deleted in the
        change store.
        """
        found = _deletes(self.data)
        positions = [each for each in found if not each.equality_ids]
        keys = [each for each in found if each.equality_ids]
        hidden, rows = sum(each.record_count for each in positions), _rows(self.data)
        return DeleteFacts(
            position_delete_files=sum(not each.is_vector for each in positions),
            deletion_vectors=sum(each.is_vector for each in positions),
            equality_delete_files=len(keys) + len(self.key_deletes),
            hidden_rows=hidden,
            equality_keys=sum(each.record_count for each in keys) + _rows(self.key_deletes),
            ratio=hidden / rows if rows else 0.0,
            files_with_deletes=sum(bool(each.split.deletes) for each in self.data),
        )

    def partition_facts(self, due: Collection[str]) -> tuple[PartitionFacts, ...]:
        """Return the facts of each partition in ``due``, in the order of ``due``."""
        of_partitions: dict[str, list[StoreFile]] = {each: [] for each in due}
        for file in (*self.data, *self.key_deletes):
            of_partitions.get(file.partition, []).append(file)
        return tuple(self._partition(each, found) for each, found in of_partitions.items())

    def _partition(self, partition: str, files: Sequence[StoreFile]) -> PartitionFacts:
        data = [each for each in files if each.kind is not FileKind.CHANGE_DELETE]
        return PartitionFacts(
            partition=partition,
            spec_id=self.spec_id,
            files=len(data),
            bytes=_bytes(data),
            rows=_rows(data),
            small_files=sum(map(self._is_small, data)),
            files_with_deletes=sum(bool(each.split.deletes) for each in data),
            delete_files=len(_deletes(data)) + len(files) - len(data),
        )

    def _is_small(self, file: StoreFile) -> bool:
        return file.in_change or file.split.file.size_bytes <= self.settings.min_target_size


def _deletes(files: Sequence[StoreFile]) -> list[DeleteFile]:
    return [*{each.id: each for file in files for each in file.split.deletes}.values()]


def _rows(files: Sequence[StoreFile]) -> int:
    return sum(each.split.file.record_count or 0 for each in files)


def _bytes(files: Sequence[StoreFile]) -> int:
    return sum(each.split.file.size_bytes for each in files)
