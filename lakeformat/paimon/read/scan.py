# SPDX-License-Identifier: Apache-2.0
"""A scan: the rows of one snapshot as batches, Arrow, pandas or polars."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta, written_millis
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.read.buckets import skips_level_zero, visible_buckets
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows, find_vectors
from lakeformat.paimon.read.explain import explain_scan
from lakeformat.paimon.read.plain_files import PlainFiles, find_plain_files
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.read.postponed_rows import (
    merged_buckets,
    merges_postponed_rows,
    reports_postponed_rows,
)
from lakeformat.paimon.read.row_ranges import deletions_of, range_rows, row_ranges
from lakeformat.paimon.read.split_reader import SplitReader
from lakeformat.paimon.read.splits import Split, bucket_splits
from lakeformat.paimon.read.where import row_filter
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.conditions.filter import PredicateFilter, Where
from lakeformat.rows.prune import Conjunction
from lakeformat.tables.results import Results, total_up_to
from lakeformat.tables.scan_arguments import limited, project
from lakeformat.tables.scan_plan import ScanPlan
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.types import DataField

__all__ = ["Scan"]


class Scan(Results):
    """The rows of a snapshot; nothing is read until you ask for a result."""

    def __init__(
        self,
        handle: TableHandle,
        snapshot: Snapshot | None,
        columns: Sequence[str] | None,
        where: PredicateFilter | None = None,
        limit: int | None = None,
        *,
        least_level: int = 0,
        with_streamed: bool = False,
        created_from_millis: int | None = None,
        decided_by: str | None = None,
        unpublished: Sequence[ManifestEntry] = (),
        without: Collection[str] = (),
    ) -> None:
        """Keep the arguments of the scan.

        ``least_level``: files of lower levels are skipped, as in the read-optimised table.
        ``with_streamed``: include level-0 rows and, in a table without a changelog producer,
        postponed rows. ``created_from_millis``: skip files written before this time.
        ``decided_by``: the option that chose the snapshot, if the call did not. ``unpublished``:
        files without a commit; they are read even if batch reads of the table skip level-0 and
        postponed rows. ``without``: names of files to skip.
        """
        self._handle = handle
        self._least_level = least_level
        self._with_streamed = with_streamed
        self._created_from = created_from_millis
        self._decided_by = decided_by
        self._unpublished = tuple(unpublished)
        self._without = frozenset(without)
        self._snapshot = snapshot
        self._fields = project(handle.schema.fields, columns)
        self._filters = [] if where is None else where.conjuncts()
        self._limit = limit
        self._planned: list[Split] | None = None
        self.report = ScanReport()
        """The numbers of files, row groups and bytes that the scan has read."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickling, without the planned splits."""
        return {**self.__dict__, "_planned": None}

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return to_arrow_schema(self._fields)

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns of the result with their types in the table."""
        return self._fields

    @property
    def table_schema(self) -> TableSchema:
        """The schema with which the rows are read."""
        return self._handle.schema

    @property
    def conditions(self) -> tuple[PredicateFilter, ...]:
        """The conditions, joined by AND, that every row of the result meets."""
        return tuple(self._filters)

    @property
    def snapshot(self) -> Snapshot | None:
        """The scanned snapshot; None for a table without commits."""
        return self._snapshot

    @property
    def snapshot_id(self) -> int:
        """The id of the scanned snapshot, for ``read_snapshot`` of a commit.

        0 for a table without commits.
        """
        return 0 if self._snapshot is None else self._snapshot.id

    def splits(self) -> list[Split]:
        """Return the splits of the scan: each can be read alone, in any order and on any machine.

        A limit applies to each split, so together they may return more rows.
        """
        # No lock is needed: planning twice has the same result.
        if self._planned is None:
            with explaining_expiry(self._handle, self._snapshot):
                self._planned = self._plan()
        return self._planned

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Stream the rows of one split of this scan, or of a scan with the same arguments.

        Raise InvalidRequestError if the split belongs to another snapshot.
        """
        yield from limited(self._read(split, self._fields), self._limit)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows; memory holds one row group of a file, or a few batches of each merged
        file.
        """
        yield from limited(self._all(), self._limit)

    def count(self) -> int:
        """Return the number of rows; data files are read only if rows must be merged or filtered.

        If no data file is read, missing data files are not noticed.
        """
        return total_up_to(self._limit, map(self._count, self.splits()))

    def meeting(self, where: Where) -> Scan:
        """Return a new scan with one more condition.

        Raise InvalidRequestError if the condition is invalid.
        """
        bound = row_filter(self._handle.schema, where, None)
        narrowed = copy(self)
        narrowed._planned, narrowed.report = None, ScanReport()
        narrowed._filters = [*self._filters, *([] if bound is None else bound.conjuncts())]
        return narrowed

    def known_count(self, split: Split) -> int | None:
        """Return the number of rows of a split if metadata is enough; None if its files must be
        read.
        """
        if self._filters:
            return None
        if split.raw_convertible:
            return self._count_raw(split)
        return None if self._handle.schema.primary_keys else self._count_joined(split)

    def plain_files(self, splits: Sequence[Split] | None = None) -> PlainFiles:
        """Return the files that any Parquet reader can read, and splits with the other files.

        ``splits=None`` means all splits of the scan. The conditions and the limit of the scan are
        not applied to plain files.
        """
        handle, snapshot = self._handle, self._snapshot
        chosen = self.splits() if splits is None else splits
        if not chosen:
            return PlainFiles((), ())
        looked_at = {name for each in self._filters for name in each.columns}
        return find_plain_files(
            handle,
            chosen,
            frozenset({field.name for field in self._fields} | looked_at),
            deleted=self._deleted,
            place=DataFiles(handle, snapshot, DeletedRows(handle, ())).place,
        )

    def explain(self) -> ScanPlan:
        """Return the number of files to read, and the number that each kind of condition skips.

        No data file is read.
        """
        found = explain_scan(
            self._handle,
            self._snapshot,
            self._pruning(),
            self.splits(),
            unpublished=len(self._unpublished),
        )
        return replace(found, decided_by=self._decided_by)

    def _plan(self) -> list[Split]:
        handle, snapshot = self._handle, self._snapshot
        # Checked for empty tables, too: they may show rows of other branches.
        require_allowed(handle, Operation.READ)
        if self._limit == 0 or (snapshot is None and not self._unpublished):
            return []
        merges_postponed = self._merges_postponed()
        found = [] if snapshot is None else plan_files(handle, snapshot, conditions=self._pruning())
        found = [*(entry for entry in found if self._is_chosen(entry.file)), *self._unpublished]
        group = merged_buckets if merges_postponed else visible_buckets
        vectors = {} if snapshot is None else find_vectors(handle, snapshot)
        level_zero = self._with_streamed or bool(self._unpublished)
        splits = [
            split
            for files in group(handle.schema, found, level_zero=level_zero)
            for split in self._splits_of(files, vectors)
        ]
        return splits if self._limit is None or self._filters else self._enough(splits)

    def _merges_postponed(self) -> bool:
        schema = self._handle.schema
        if self._unpublished:
            return schema.table_options.bucket == POSTPONE_BUCKET
        merges = reports_postponed_rows if self._with_streamed else merges_postponed_rows
        return self._least_level == 0 and merges(schema)

    def _pruning(self) -> Conjunction:
        schema, filters = self._handle.schema, self._filters
        sees_level_zero = self._with_streamed and skips_level_zero(schema)
        # A postponed, level-0 or unpublished row may change any non-key column of a visible row.
        if self._unpublished or sees_level_zero or self._merges_postponed():
            keys = {*schema.partition_keys}
            filters = [each for each in filters if each.columns <= keys]
        return [c for each in filters for c in each.conditions()]

    def _is_chosen(self, file: DataFileMeta) -> bool:
        if file.level < self._least_level or file.file_name in self._without:
            return False
        return self._created_from is None or _is_from(file, self._created_from)

    def _splits_of(
        self,
        files: tuple[ManifestEntry, ...],
        vectors: Mapping[tuple[bytes, int], tuple[IndexManifestEntry, ...]],
    ) -> list[Split]:
        """Return the splits of ``files``.

        ``files`` are the files of one bucket or, if a partition has postponed rows, all files of
        the partition. The files of such a partition are returned as one split.
        """
        places = dict.fromkeys((entry.partition, entry.bucket) for entry in files)
        marks = tuple(entry for place in places for entry in vectors.get(place, ()))
        if any(entry.bucket == POSTPONE_BUCKET for entry in files):
            return [Split(self.snapshot_id, files, raw_convertible=False, vectors=marks)]
        return bucket_splits(self._handle.schema, self.snapshot_id, files, marks)

    def _enough(self, splits: list[Split]) -> list[Split]:
        """Return the first splits whose known row counts together reach the limit.

        Return all splits if their known row counts do not reach it.
        """
        assert self._limit is not None
        known = 0
        for position, split in enumerate(splits):
            if known >= self._limit:
                return splits[:position]
            known += self._count_raw(split) if split.raw_convertible else 0
        return splits

    def _all(self) -> Iterator[pa.RecordBatch]:
        for split in self.splits():
            yield from self._read(split, self._fields)

    def _read(self, split: Split, fields: tuple[DataField, ...]) -> Iterator[pa.RecordBatch]:
        handle, snapshot = self._handle, self._snapshot
        if split.snapshot_id != self.snapshot_id:
            found = "an empty table" if snapshot is None else f"snapshot {snapshot.id}"
            raise InvalidRequestError(
                f"the split belongs to snapshot {split.snapshot_id}, but this scan reads {found}: "
                "use a scan of the split's snapshot"
            )
        files = DataFiles(handle, snapshot, self._deleted(split), self.report)
        with explaining_expiry(handle, snapshot):
            yield from SplitReader(handle.schema, files, fields, self._filters).read(split)

    def _deleted(self, split: Split) -> DeletedRows:
        return DeletedRows(self._handle, split.vectors, self._vector_source())

    def _vector_source(self) -> str:
        snapshot = self._snapshot
        if snapshot is None or snapshot.index_manifest is None:
            return ""
        return self._handle.storage.uri(self._handle.layout.manifest(snapshot.index_manifest))

    def _count(self, split: Split) -> int:
        if (known := self.known_count(split)) is not None:
            return known
        return sum(batch.num_rows for batch in self._read(split, self._handle.schema.fields[:0]))

    def _count_raw(self, split: Split) -> int:
        deleted = self._deleted(split)
        with explaining_expiry(self._handle, self._snapshot):
            return sum(entry.file.row_count - deleted.count(entry) for entry in split.files)

    def _count_joined(self, split: Split) -> int:
        deleted, groups = self._deleted(split), row_ranges(split.files)
        with explaining_expiry(self._handle, self._snapshot):
            gone = sum(deleted.count(deletions_of(group)) for group in groups)
        return sum(map(range_rows, groups)) - gone


def _is_from(file: DataFileMeta, millis: int) -> bool:
    written = written_millis(file)
    return written is not None and written >= millis
