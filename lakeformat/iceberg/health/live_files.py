# SPDX-License-Identifier: Apache-2.0
"""The live files of a snapshot: their sizes, rows, partitions and deletes, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.health.applied_deletes import AppliedDeletes, FileColumns, apply_deletes
from lakeformat.iceberg.health.health_report import DataFileFacts, DeleteFacts, PartitionFacts
from lakeformat.iceberg.metadata.manifest import DATA, EQUALITY_DELETES, POSITION_DELETES
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_text import partition_text
from lakeformat.iceberg.read.delete_index import FILE_PATH_ID
from lakeformat.iceberg.read.entry_columns import EntryColumns, is_unpartitioned, partition_columns
from lakeformat.iceberg.types import PrimitiveType
from lakeformat.tables.health.groups import Counts, FileGroups, Mask, grouped
from lakeformat.tables.health.score import BYTES_PART, ENOUGH_FILES, Pending

__all__ = ["ENOUGH_INPUT_FILES", "MUCH_HIDDEN", "LiveFiles"]

ENOUGH_INPUT_FILES = 5
"""``rewrite_data_files`` rewrites a partition with at least this many files of unwanted size."""
_LARGE_PART = 1.8
"""``rewrite_data_files`` splits a file larger than the target size times this factor."""
MUCH_HIDDEN = 0.3
"""``rewrite_data_files`` rewrites a file of which at least this share of the rows is deleted."""
_VECTORS = "PUFFIN"


class LiveFiles:
    """The live data and delete files of one snapshot."""

    def __init__(
        self, metadata: TableMetadata, by_spec: Mapping[int, pa.Table], target_file_size: int
    ) -> None:
        self._metadata = metadata
        self._by_spec = by_spec
        self._target = target_file_size
        self._files = _columns(metadata, by_spec)
        self.is_data: Mask = self._files.content == DATA
        sizes = self._files.size
        self._is_small: Mask = self.is_data & (sizes < BYTES_PART * target_file_size)
        self._is_large: Mask = self.is_data & (sizes > _LARGE_PART * target_file_size)
        self._applied: AppliedDeletes = apply_deletes(self._files)
        rows = np.maximum(self._files.rows, 1)
        self._over_limit: Mask = self._applied.hidden >= MUCH_HIDDEN * rows
        self._over_limit &= self.is_data

    @cached_property
    def partitions(self) -> FileGroups:
        """The files, grouped by partition spec and partition."""
        return grouped(self._files.partition)

    @cached_property
    def due(self) -> Mask:
        """A mask of the partitions that ``rewrite_data_files`` would rewrite because of file
        sizes.
        """
        asked = self._is_small | self._is_large
        count = self.partitions.count(asked)
        sizes = self.partitions.sum(self._files.size, asked)
        fills = (count > 1) & (sizes > self._target)
        found: Mask = (count >= ENOUGH_INPUT_FILES) | fills | (sizes > _LARGE_PART * self._target)
        return found

    def facts(self) -> DataFileFacts:
        """Return the numbers about data files."""
        data, small = self.is_data, self._is_small
        return DataFileFacts(
            files=int(data.sum()),
            rows=int(self._files.rows[data].sum()),
            partitions=int(np.count_nonzero(self.partitions.count(data))),
            target_file_size=self._target,
            small_files=int(small.sum()),
            small_bytes=int(self._files.size[small].sum()),
            partitions_due=int(self.due.sum()),
        )

    def deletes(self) -> DeleteFacts:
        """Return the numbers about delete files."""
        files, applied = self._files, self._applied
        rows = int(files.rows[self.is_data].sum())
        hidden = int(applied.hidden_rows)
        is_equality = files.content == EQUALITY_DELETES
        positions = (files.content == POSITION_DELETES) & ~files.is_vector
        return DeleteFacts(
            position_delete_files=int(positions.sum()),
            deletion_vectors=int(files.is_vector.sum()),
            equality_delete_files=int(is_equality.sum()),
            hidden_rows=hidden,
            equality_keys=int(files.rows[is_equality & ~applied.dangling].sum()),
            ratio=hidden / rows if rows else 0.0,
            files_with_deletes=int(applied.has_deletes.sum()),
            files_over_limit=int(self._over_limit.sum()),
            dangling_files=int(applied.dangling.sum()),
        )

    def pending(self) -> Pending:
        """Return, for each partition, the number, bytes and rows of the files worth a rewrite.

        For each partition, the result also has two counts of deletes. ``deletes`` is the number of
        rows in equality delete files that apply to data files. ``hidden`` is the sum of
        ``AppliedDeletes.hidden`` for the files worth a rewrite.
        """
        partitions, files, applied = self.partitions, self._files, self._applied
        waiting = self._is_small | (applied.hidden > 0) | applied.has_equality_deletes
        keys = (files.content == EQUALITY_DELETES) & ~applied.dangling
        everywhere = int(files.rows[keys & files.is_everywhere].sum())
        return Pending(
            files=partitions.count(waiting),
            bytes=partitions.sum(files.size, waiting),
            rows=partitions.sum(files.rows, waiting),
            deletes=partitions.sum(files.rows, keys & ~files.is_everywhere) + everywhere,
            hidden=partitions.sum(applied.hidden, waiting),
            enough_files=np.full(len(partitions), float(ENOUGH_FILES)),
            enough_bytes=BYTES_PART * self._target,
        )

    def worst(self, count: int) -> tuple[PartitionFacts, ...]:
        """Return the ``count`` most urgent partitions.

        Partitions that are due come first, then all other partitions. Both groups are sorted by the
        number of small files, then by the number of files with deletes, then by bytes. Larger
        numbers come first.
        """
        partitions, files = self.partitions, self._files
        small, sizes = partitions.count(self._is_small), partitions.sum(files.size, self.is_data)
        with_deletes = partitions.count(self._applied.has_deletes)
        order = np.lexsort((-sizes, -with_deletes, -small, ~self.due))[:count]
        of_data, of_deletes = partitions.count(self.is_data), partitions.count(~self.is_data)
        rows = partitions.sum(files.rows, self.is_data)
        return tuple(
            PartitionFacts(
                partition=self._name(int(partitions.first[at])),
                spec_id=int(files.spec_id[partitions.first[at]]),
                files=int(of_data[at]),
                bytes=int(sizes[at]),
                rows=int(rows[at]),
                small_files=int(small[at]),
                files_with_deletes=int(with_deletes[at]),
                delete_files=int(of_deletes[at]),
            )
            for at in order
        )

    def _name(self, place: int) -> str:
        """Return the partition of the file in row ``place``, as ``dt=2024-01-31/shop=a``."""
        for spec_id, entries in self._by_spec.items():
            if place < entries.num_rows:
                spec = self._metadata.spec_of(spec_id)
                types = [each.type for each in partition_type(self._metadata, spec).fields]
                values = partition_columns(entries.slice(place, 1))
                return "/".join(
                    f"{field.name}={partition_text(field.transform, kind, value)}"
                    for field, kind, value in zip(spec.fields, types, values, strict=True)
                    if isinstance(kind, PrimitiveType)
                )
            place -= entries.num_rows
        raise IndexError(place)


def _columns(metadata: TableMetadata, by_spec: Mapping[int, pa.Table]) -> FileColumns:
    parts, codes, everywhere, targets, paths, known = [], [], [], [], [], 0
    for spec_id, entries in by_spec.items():
        of_partition = _partition_codes(entries)
        codes.append(of_partition + known)
        known += int(of_partition.max(initial=-1)) + 1
        is_global = is_unpartitioned(metadata.spec_of(spec_id))
        everywhere.append(np.full(entries.num_rows, is_global, np.bool_))
        targets.append(_target_paths(entries))
        paths.append(entries.column("file_path").cast(pa.large_binary()).combine_chunks())
        names = ("content", "spec_id", "record_count", "file_size_in_bytes", "sequence_number")
        parts.append(entries.select((*names, "file_format")))
    table = pa.concat_tables(parts)
    numbers = [table.column(name).to_numpy() for name in table.column_names[:5]]
    content, spec_id_of_file, rows, size, sequence = numbers
    formats = pc.equal(table.column("file_format"), _VECTORS)
    return FileColumns(
        content=content,
        spec_id=spec_id_of_file,
        rows=np.maximum(rows, 0),  # -1 means that the number is unknown
        size=size,
        sequence=sequence,
        partition=np.concatenate(codes),
        path=pa.chunked_array(paths, pa.large_binary()),
        target=pa.chunked_array(targets, pa.large_binary()),
        is_vector=formats.to_numpy() & (content == POSITION_DELETES),
        is_everywhere=np.concatenate(everywhere) & (content == EQUALITY_DELETES),
    )


def _partition_codes(entries: pa.Table) -> Counts:
    """Return a number for each entry; it is equal for entries of the same partition."""
    codes = np.zeros(entries.num_rows, np.int64)
    for column in partition_columns(entries):
        values = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
        width = int(values.max(initial=0)) + 1
        _, codes = np.unique(codes * width + values, return_inverse=True)
    return codes.astype(np.int64)


def _target_paths(entries: pa.Table) -> pa.Array:
    """Return, for each position delete file of a single data file, the URI of that data file.

    The value is null for all other files.
    """
    statistics = EntryColumns(entries)
    lower = statistics.statistic("lower_bounds", FILE_PATH_ID).cast(pa.large_binary())
    upper = statistics.statistic("upper_bounds", FILE_PATH_ID).cast(pa.large_binary())
    only = pc.if_else(pc.equal(lower, upper), lower, None)
    named = entries.column("referenced_data_file").cast(pa.large_binary()).combine_chunks()
    is_position = pc.equal(entries.column("content"), POSITION_DELETES).combine_chunks()
    return pc.if_else(is_position, pc.coalesce(named, only), None)
