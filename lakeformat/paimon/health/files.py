# SPDX-License-Identifier: Apache-2.0
"""The sizes and row counts of the files of a snapshot, and their sums for each bucket and
partition.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health.health_report import BucketFacts, DeleteFacts, FileFacts
from lakeformat.paimon.metadata.index_manifest import DELETION_VECTORS, IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.partition import partition_name
from lakeformat.paimon.read.buckets import skips_level_zero
from lakeformat.paimon.read.row_ranges import rows_by_file
from lakeformat.tables.health.groups import Counts, FileGroups, Mask, grouped
from lakeformat.tables.health.score import BYTES_PART, ENOUGH_FILES, Pending
from lakeformat.types.arrow_memory import array_of, numbers

__all__ = ["MUCH_DELETED", "FileState", "target_size"]

MUCH_DELETED = 0.2
"""The report advises a full compaction if delete rows are more than this share of all rows."""


class FileState:
    """The live files of a snapshot, from which a health report takes its numbers."""

    def __init__(
        self, handle: TableHandle, live: ManifestColumns, index_files: list[IndexManifestEntry]
    ) -> None:
        options = handle.options
        self._handle = handle
        self._columns = live
        self.is_keyed = bool(handle.schema.primary_keys)
        self._target = target_size(handle)
        self._sizes = live.file_size.numbers
        self._rows = rows_by_file(handle.schema, live)
        self._levels = live.level.numbers
        self._all = np.ones(len(live), np.bool_)
        self._is_postponed: Mask = live.bucket.numbers == POSTPONE_BUCKET
        self._is_small: Mask = self._sizes < self._target * options.compaction_small_file_ratio
        self._is_fresh: Mask = (self._levels == 0) & ~self._is_postponed
        self._hidden, self._uncounted_vectors = _hidden_rows(live, index_files)
        self._over_limit: Mask = (
            self._hidden > options.compaction_delete_ratio_threshold * live.row_count.numbers
        )

    @cached_property
    def partitions(self) -> FileGroups:
        """The files grouped by partition."""
        codes = self._columns.partition.to_arrow().dictionary_encode().indices
        return grouped(numbers(codes).astype(np.int64))

    @cached_property
    def buckets(self) -> FileGroups:
        """The files grouped by partition and bucket."""
        _, bucket = np.unique(self._columns.bucket.numbers, return_inverse=True)
        width = int(bucket.max(initial=0)) + 1
        return grouped(self.partitions.of_file * width + bucket)

    @cached_property
    def runs(self) -> Counts:
        """The number of sorted runs of each bucket."""
        higher = ~self._is_fresh & ~self._is_postponed
        levels = self.buckets.of_file * (int(self._levels.max(initial=0)) + 1) + self._levels
        per_level = grouped(levels[higher])
        of_bucket = self.buckets.of_file[higher][per_level.first]
        return self.buckets.count(self._is_fresh) + np.bincount(
            of_bucket, minlength=len(self.buckets)
        )

    @cached_property
    def due(self) -> Mask:
        """A mask of the buckets with too many sorted runs or, in append tables, with too many small
        files or deleted rows.
        """
        options, marked = self._handle.options, self.buckets.count(self._over_limit) > 0
        if self.is_keyed:
            return (self.runs >= options.compaction_trigger) & (self.runs > 1)
        small = self._is_small | self._over_limit
        count = self.buckets.count(small)
        sizes = self.buckets.sum(self._sizes + options.source_split_open_file_cost_bytes, small)
        fills = (count > 1) & (sizes >= 2 * self._target)
        found: Mask = (count >= options.compaction_min_file_num) | fills | marked
        return found

    def due_places(self) -> frozenset[tuple[bytes, int]]:
        """Return the buckets that the verdict advises to compact.

        Each is a pair: the partition as manifests store it (a framed binary row), and the bucket
        number.
        """
        buckets = self.buckets
        wanted = self.due | (buckets.count(self._is_postponed) > 0)
        wanted = wanted | (buckets.count(self._over_limit) > 0)
        if skips_level_zero(self._handle.schema):
            wanted = wanted | (buckets.count(self._is_fresh) > 0)
        deletes, rows = self._columns.delete_row_count.numbers, int(self._rows.sum())
        if rows and int(deletes.sum()) > MUCH_DELETED * rows:
            deleted = buckets.sum(deletes, self._all)
            wanted = wanted | (deleted > MUCH_DELETED * buckets.sum(self._rows, self._all))
        first = buckets.first[np.flatnonzero(wanted)]
        partitions = self._columns.partition.take(first).values()
        numbers = self._columns.bucket.numbers[first]
        return frozenset(
            (partition or b"", int(bucket))
            for partition, bucket in zip(partitions, numbers, strict=True)
        )

    def facts(self) -> FileFacts:
        """Return the numbers of all files for the health report."""
        fresh, uncovered = self._is_fresh, self._lacks_changelog()
        return FileFacts(
            files=len(self._columns),
            rows=int(self._rows.sum()),
            buckets=len(self.buckets),
            partitions=len(self.partitions),
            target_file_size=self._target,
            small_files=int(self._is_small.sum()),
            small_bytes=int(self._sizes[self._is_small].sum()),
            level_0_files=int(fresh.sum()) if self.is_keyed else None,
            level_0_bytes=int(self._sizes[fresh].sum()) if self.is_keyed else None,
            level_0_rows=int(self._rows[fresh].sum()) if self.is_keyed else None,
            most_sorted_runs=int(self.runs.max(initial=0)) if self.is_keyed else None,
            buckets_due=int(self.due.sum()),
            postponed_files=int(self._is_postponed.sum()),
            untold_files=None if uncovered is None else int(uncovered.sum()),
            untold_rows=None if uncovered is None else int(self._rows[uncovered].sum()),
        )

    @property
    def live_bytes(self) -> int:
        return int(self._sizes.sum())

    def deletes(self) -> DeleteFacts:
        """Return the facts about delete rows and about rows that deletion vectors hide."""
        column = self._columns.delete_row_count
        taken_back, hidden = int(column.numbers.sum()), int(self._hidden.sum())
        unsaid = 0 if column.present is None else int((~column.present).sum())
        rows = int(self._rows.sum())
        return DeleteFacts(
            delete_rows=taken_back,
            hidden_rows=hidden,
            ratio=(taken_back + hidden) / rows if rows else 0.0,
            files_over_limit=int(self._over_limit.sum()),
            uncounted_files=(unsaid if self.is_keyed else 0) + self._uncounted_vectors,
        )

    def pending(self) -> Pending:
        """Return number, bytes and rows of the files that a compaction would rewrite, for each
        partition.
        """
        least = BYTES_PART * self._target
        partitions, options = self.partitions, self._handle.options
        waiting = self._outside_last_run() if self.is_keyed else self._sizes < least
        waiting = (waiting | (self._hidden > 0)) & ~self._is_postponed
        enough = np.full(len(partitions), float(ENOUGH_FILES))
        if self.is_keyed:
            buckets = np.bincount(partitions.of_file[self.buckets.first], minlength=len(partitions))
            enough = buckets * float(options.compaction_trigger)
        return Pending(
            files=partitions.count(waiting),
            bytes=partitions.sum(self._sizes, waiting),
            rows=partitions.sum(self._rows, waiting),
            deletes=partitions.sum(self._columns.delete_row_count.numbers, waiting & self._is_fresh)
            if self.is_keyed
            else np.zeros(len(partitions), np.int64),
            hidden=partitions.sum(self._hidden, waiting),
            enough_files=enough,
            enough_bytes=least,
        )

    def worst(self, count: int) -> tuple[BucketFacts, ...]:
        """Return the ``count`` buckets with the most sorted runs or, in append tables, the most
        small files.
        """
        buckets, small = self.buckets, self.buckets.count(self._is_small)
        fresh_bytes = self.buckets.sum(self._sizes, self._is_fresh)
        first, then = (
            (self.runs, fresh_bytes) if self.is_keyed else (small, buckets.count(self._all))
        )
        order = np.lexsort((np.arange(len(buckets)), -then, -first))[:count]
        fresh = buckets.count(self._is_fresh)
        counts, rows = buckets.count(self._all), buckets.sum(self._rows, self._all)
        sizes = buckets.sum(self._sizes, self._all)
        partitions = self._columns.partition.take(buckets.first[order]).values()
        numbers = self._columns.bucket.numbers[buckets.first[order]]
        return tuple(
            BucketFacts(
                partition=partition_name(self._handle.schema, partition or b""),
                bucket=int(bucket),
                files=int(counts[at]),
                bytes=int(sizes[at]),
                rows=int(rows[at]),
                small_files=int(small[at]),
                level_0_files=int(fresh[at]) if self.is_keyed else None,
                level_0_bytes=int(fresh_bytes[at]) if self.is_keyed else None,
                sorted_runs=int(self.runs[at]) if self.is_keyed else None,
            )
            for at, partition, bucket in zip(order, partitions, numbers, strict=True)
        )

    def _lacks_changelog(self) -> Mask | None:
        """Return a mask of the files whose rows no changelog contains yet.

        Return None if compactions of the table write no changelog.
        """
        options = self._handle.options
        if not self.is_keyed or not options.makes_changelog:
            return None
        if options.strategy_of_changelog() == "full":
            # The changelog gets only rows that reach the highest level.
            return self._levels < options.level_count - 1
        return self._is_fresh | self._is_postponed

    def _outside_last_run(self) -> Mask:
        """Return a mask of the files that are on level 0 or below the highest level of their
        bucket.
        """
        highest = np.zeros(len(self.buckets), np.int64)
        np.maximum.at(highest, self.buckets.of_file, self._levels)
        found: Mask = self._is_fresh | (self._levels < highest[self.buckets.of_file])
        return found


def target_size(handle: TableHandle) -> int:
    """Return the target size of the table's new files in bytes."""
    options = handle.options
    if handle.schema.primary_keys:
        options = options.of_level(0)
    return options.target_file_size_bytes


def _hidden_rows(
    live: ManifestColumns, index_files: list[IndexManifestEntry]
) -> tuple[Counts, int]:
    """Return for each file the number of rows that deletion vectors hide.

    Also return the number of files whose vector has no row count.
    """
    found = [
        (entry.partition, entry.bucket, each.data_file_name.encode(), each.cardinality)
        for entry in index_files
        if entry.index_type == DELETION_VECTORS
        for each in entry.ranges or ()
    ]
    hidden = np.zeros(len(live), np.int64)
    if not found:
        return hidden, 0
    partitions, buckets, names, counts = zip(*found, strict=True)
    vectors = _places(
        pa.array(names, pa.large_binary()),
        pa.array(partitions, pa.large_binary()),
        pa.array(buckets, pa.int64()),
    )
    files = _places(
        live.file_name.to_arrow(), live.partition.to_arrow(), array_of(live.bucket.numbers)
    )
    at = pc.index_in(files, vectors)
    marked = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    taken = pa.array(counts, pa.int64()).take(at.drop_null())
    hidden[marked] = taken.fill_null(0).to_numpy(zero_copy_only=False)
    return hidden, taken.null_count


def _places(names: pa.Array, partitions: pa.Array, buckets: pa.Array) -> pa.Array:
    """Return a unique key for each file: name, bucket and partition, separated by zero bytes.

    No name has a zero byte.
    """
    shown = buckets.cast(pa.string()).cast(pa.large_binary())
    zero = pa.scalar(b"\0", pa.large_binary())
    return pc.binary_join_element_wise(names, shown, partitions, zero)
