# SPDX-License-Identifier: Apache-2.0
"""All rows of a snapshot, each with its row kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.read.buckets import visible_buckets
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import find_deleted_rows
from lakeformat.paimon.read.merged_rows_with_kind import MergedRowsWithKind
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.read.postponed_rows import merged_buckets, reports_postponed_rows
from lakeformat.rows.prune import on_columns

__all__ = ["StateRows"]


@dataclass(frozen=True, slots=True)
class StateRows:
    """The merged rows of a snapshot with their kinds.

    ``snapshot=None`` means a table without commits, which has no rows.
    """

    handle: TableHandle
    snapshot: Snapshot | None
    asked: ChangedRows
    least_level: int = 0
    """Files below this level are skipped."""
    with_streamed: bool = False
    """True to include level-0 rows and, in a table without a changelog producer, postponed rows."""
    keep_retracts: bool = False
    """True to keep the delete row of a deleted key instead of dropping the key."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows; ``rowkind`` is the first column."""
        if self.snapshot is None:
            return
        with explaining_expiry(self.handle, self.snapshot):
            yield from self._read(self.snapshot)

    def _read(self, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        files = DataFiles(self.handle, snapshot, find_deleted_rows(self.handle, snapshot))
        group = merged_buckets if self._merges_postponed else visible_buckets
        live = self._live_files(snapshot)
        for bucket in group(self.handle.schema, live, level_zero=self.with_streamed):
            for batch in self._of_bucket(files, bucket):
                if batch.num_rows:
                    yield batch

    @property
    def _merges_postponed(self) -> bool:
        return (
            self.with_streamed
            and not self.least_level
            and reports_postponed_rows(self.handle.schema)
        )

    def _live_files(self, snapshot: Snapshot) -> list[ManifestEntry]:
        schema, where = self.handle.schema, self.asked.where
        conditions = () if where is None else where.conditions()
        if schema.primary_keys:  # values of other columns are only known after the merge
            keys = schema.partition_keys if self._merges_postponed else schema.primary_keys
            conditions = on_columns(conditions, keys)
        found = plan_files(self.handle, snapshot, conditions=conditions)
        return [entry for entry in found if entry.file.level >= self.least_level]

    def _of_bucket(
        self, files: DataFiles, bucket: tuple[ManifestEntry, ...]
    ) -> Iterator[pa.RecordBatch]:
        asked = self.asked
        if not self.handle.schema.primary_keys:
            for entry in bucket:
                yield from map(asked.inserted, files.rows(entry, asked.fields))
            return
        merged = MergedRowsWithKind(self.handle.schema, files, asked.fields)
        yield from map(asked.of_stored, merged.read(bucket, keep_retracts=self.keep_retracts))
