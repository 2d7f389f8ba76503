# SPDX-License-Identifier: Apache-2.0
"""Rewrites the files of one group, without publishing them.

Row groups are copied where possible; otherwise live rows are read and written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.errors import LakeError
from lakeformat.iceberg.compact.copies import CopyChoice, copy_choice
from lakeformat.iceberg.compact.file_order import FileOrder
from lakeformat.iceberg.compact.plan import CompactPlan, CompactUnit
from lakeformat.iceberg.compact.settings import TARGET_PROPERTY
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.read.file_rows import lineage_of
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.planned_files import PlannedFile
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.rows.range_sort import sorted_batches
from lakeformat.rows.spill import SpillSettings

__all__ = ["RewrittenUnit", "UnitWork", "unit_work"]

_SPILL = SpillSettings(write_buffer_size_bytes=1 << 30)


@dataclass(frozen=True, slots=True)
class RewrittenUnit:
    """A rewritten group of files, with the manifest entries of its new files."""

    unit: CompactUnit
    entries: pa.Table
    millis: int

    @property
    def paths(self) -> list[str]:
        """The URIs of the new files."""
        found: list[str] = self.entries.column("file_path").to_pylist()
        return found


@dataclass(frozen=True, slots=True)
class UnitWork:
    """Rewrites the groups of one plan; it can be pickled and sent to another process."""

    scan: Scan
    """Reads the live rows of the planned snapshot, with the current columns."""
    loaded: LoadedMetadata
    environment: Environment
    choice: CopyChoice
    order: FileOrder | None = None
    keys: Scan | None = None
    """Reads the columns that the order of rows compares; None if rows are not sorted."""

    def __call__(self, unit: CompactUnit) -> RewrittenUnit:
        """Rewrite a group of files; after any exception, the new files are deleted."""
        began = self.environment.now_millis()
        lineage = lineage_of(self.loaded.metadata)
        order_id = 0 if self.order is None else self.order.sort_order_id
        writer = TableWriter(
            self.loaded, self.environment, lineage, is_sorted=False, sort_order_id=order_id
        )
        try:
            self._write(unit, writer)
            entries = writer.finish()
        except BaseException:
            writer.discard()
            raise
        return RewrittenUnit(unit, entries, self.environment.now_millis() - began)

    def _write(self, unit: CompactUnit, writer: TableWriter) -> None:
        if self.order is not None and self.keys is not None:
            rows, keys = (partial(self._read, each, unit.files) for each in (self.scan, self.keys))
            _write_sorted(unit, rows(), keys, self.order, writer)
            return
        for batch in self._read(self.scan, self.choice.copy(self.loaded, unit.files, writer)):
            writer.write(batch)

    def _read(self, scan: Scan, files: Iterable[PlannedFile]) -> Iterator[pa.RecordBatch]:
        for file in files:
            for batch in scan.read(file.split):
                if self.environment.is_given_up():
                    raise LakeError(f"reading {self.loaded.places.uri} was cancelled")
                yield batch


def unit_work(plan: CompactPlan, environment: Environment) -> UnitWork:
    """Return the function that rewrites the groups of a plan."""
    metadata = plan.loaded.metadata
    state = TableState(plan.loaded.places, metadata, plan.snapshot, metadata.schema)
    # In version 3 rows keep their row ids and the sequence numbers of their last change.
    columns = [each.name for each in (*metadata.schema.fields, *lineage_of(metadata))]
    settings, order = plan.settings, plan.order
    # Sorted rows are already divided into files by number. The size only limits files with large
    # rows.
    size = settings.target_bytes if order is None else settings.largest_bytes
    target = {TARGET_PROPERTY: str(size)}
    sized = replace(metadata, properties={**metadata.properties, **target})
    loaded = replace(plan.loaded, metadata=sized)
    keys = None if order is None else Scan(state, order.with_partitions.columns)
    choice = copy_choice(plan)
    return UnitWork(Scan(state, columns), loaded, environment, choice, order, keys)


def _write_sorted(
    unit: CompactUnit,
    rows: Iterator[pa.RecordBatch],
    keys: Callable[[], Iterator[pa.RecordBatch]],
    order: FileOrder,
    writer: TableWriter,
) -> None:
    """Write the rows of a group in order; ``keys`` reads only the columns that are compared.

    In each partition, the rows of a new file follow the rows of the previous file.
    """

    def read_keys(_: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return keys()

    chosen = order.rows if unit.has_one_partition else order.with_partitions
    files = unit.expected_files if unit.has_one_partition else 1
    # The manifests may lack the number of rows.
    left = rows_of_file = -(-unit.rows // files) or sys.maxsize
    for batch in sorted_batches(rows, read_keys, unit.rows, chosen, _SPILL):
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, left)
            writer.write(part)
            rest, left = rest.slice(part.num_rows), left - part.num_rows
            if not left:
                writer.end_files()
                left = rows_of_file
