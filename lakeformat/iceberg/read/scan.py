# SPDX-License-Identifier: Apache-2.0
"""Scans: the rows of one snapshot as batches, Arrow, pandas or polars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.read.condition_fields import columns_with, condition_fields
from lakeformat.iceberg.read.data_file import FileSplit
from lakeformat.iceberg.read.deleted_rows import DeletedRows, read_fields
from lakeformat.iceberg.read.explain import IcebergScanPlan, explain_plan
from lakeformat.iceberg.read.file_rows import (
    POSITION,
    FileRows,
    Lineage,
    RowGroupPruning,
    file_rows_of,
    lineage_of,
)
from lakeformat.iceberg.read.file_splits import plan_splits
from lakeformat.iceberg.read.key_columns import newest_schemas
from lakeformat.iceberg.read.plan import FilePlan, TableState, plan_files
from lakeformat.iceberg.types import Field
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.rows.groups import Positions
from lakeformat.rows.prune import Conjunction
from lakeformat.tables.results import Results, total_up_to
from lakeformat.tables.scan_arguments import limited, project
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_memory import array_of

if TYPE_CHECKING:
    from lakeformat.iceberg.read.unpublished_files import UnpublishedFiles

__all__ = ["Scan"]


_TARGET_BYTES, _OPEN_FILE_BYTES = 128 << 20, 4 << 20


class Scan(Results):
    """The rows of a snapshot; nothing is read until you ask for a result."""

    def __init__(
        self,
        state: TableState,
        columns: Sequence[str] | None = None,
        where: PredicateFilter | None = None,
        limit: int | None = None,
        *,
        unpublished: UnpublishedFiles | None = None,
    ) -> None:
        """Store the arguments of the scan.

        In a table of version 3 ``columns`` may name ``_row_id`` and
        ``_last_updated_sequence_number``. ``unpublished`` are files to read in addition to the
        snapshot. Raise ``InvalidRequestError`` for a column that does not exist or is
        named twice.
        """
        self._state = state
        self._fields: tuple[Field, ...] = project(
            state.schema.fields, columns, lineage_of(state.metadata), each_once=True
        )
        self._filters = [] if where is None else where.conjuncts()
        self._limit = limit
        self._unpublished = unpublished
        self.report = ScanReport()
        """Counts of what the scan has read so far."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling; plans and cached deletes are left out."""
        planned = ("_plan", "_splits", "_deleted", "_files")
        return {name: value for name, value in self.__dict__.items() if name not in planned}

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return pa.schema([to_arrow_field(field) for field in self._fields])

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the rows with their Iceberg types."""
        return self._fields

    @property
    def snapshot_id(self) -> int | None:
        """The id of the scanned snapshot; None if the scan reads no snapshot."""
        return None if self._state.snapshot is None else self._state.snapshot.snapshot_id

    @property
    def split_sizes(self) -> tuple[int, int]:
        """The bytes that one task should read, and the least size that is assumed for a file.

        These are the properties ``read.split.target-size`` and ``read.split.open-file-cost``. A
        property that is not a number raises ``InvalidRequestError``.
        """
        properties = self._state.metadata.properties
        return (
            int_property(properties, "read.split.target-size", _TARGET_BYTES),
            int_property(properties, "read.split.open-file-cost", _OPEN_FILE_BYTES),
        )

    def splits(self) -> list[FileSplit]:
        """Return the splits of the scan, which can be read in any order and on any machine.

        A limit applies to each split separately.
        """
        return self._splits

    def read(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        """Stream the rows of one split, which was planned by a scan with the same arguments.

        Raise ``InvalidRequestError`` if the split belongs to another snapshot.
        """
        if split.snapshot_id != self.snapshot_id:
            own, found = (
                "no snapshot" if number is None else f"snapshot {number}"
                for number in (split.snapshot_id, self.snapshot_id)
            )
            raise InvalidRequestError(
                f"the split belongs to {own}, but this scan reads {found}: "
                "read the split with the scan that returned it, or with a scan of the split's "
                "snapshot"
            )
        yield from limited(self._read(split, self._fields), self._limit)

    def expect(self, splits: Iterable[FileSplit]) -> None:
        """Register splits that will be read.

        So the equality deletes of one partition are read together.
        """
        self._deleted.expect(splits)

    def read_fields(self, split: FileSplit, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        """Stream the columns ``fields`` of the rows that the scan selects in a split.

        ``fields`` may have fields that are not columns of the scan, such as the position of a row.
        """
        return self._read(split, fields)

    def positions(self, split: FileSplit) -> Iterator[Positions]:
        """Yield the positions of the rows that the scan selects in a split, in ascending order."""
        for batch in self._read(split, (POSITION,)):
            yield batch.column(0).to_numpy()

    def deleted_positions(self, split: FileSplit) -> DeletionVector | None:
        """Return the positions of a split's rows that are deleted by position; None if none are."""
        return self._deleted.vector(split)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows. Memory holds about one row group of one file, and the last deletes that
        were read.
        """
        splits = [] if self._limit == 0 else self.splits()
        self._deleted.expect(splits)
        batches = (batch for split in splits for batch in self._read(split, self._fields))
        yield from limited(batches, self._limit)

    def count(self) -> int:
        """Return the number of rows.

        A data file is read only if the scan has conditions, if equality deletes apply to the file,
        or if the metadata lacks its row count. The rows of all other files are counted from
        metadata and position deletes, so the count does not notice if such a file is missing.
        """
        self._deleted.expect(self.splits())
        return total_up_to(self._limit, map(self._count, self.splits()))

    def known_count(self, split: FileSplit) -> int | None:
        """Return the number of rows of a split without reading its data file.

        Return None if the data file must be read.
        """
        count = split.file.record_count
        if count is None or self._filters or any(each.equality_ids for each in split.deletes):
            return None
        vector = self._deleted.vector(split)
        return count - (0 if vector is None else vector.cardinality)

    def explain(self) -> IcebergScanPlan:
        """Explain what the scan would read, and what each level of metadata excludes. No data file
        is read.
        """
        return explain_plan(self._state, self._plan, self.splits())

    @cached_property
    def _plan(self) -> FilePlan:
        plan = plan_files(self._state, self._conditions)
        return plan if self._unpublished is None else self._unpublished.merged(plan)

    @cached_property
    def _splits(self) -> list[FileSplit]:
        return plan_splits(self._state, self._plan)

    @cached_property
    def _deleted(self) -> DeletedRows:
        return DeletedRows(self._files, newest_schemas(self._state.metadata))

    @cached_property
    def _files(self) -> FileRows:
        return file_rows_of(self._state.places, self._state.metadata.properties)

    @property
    def _conditions(self) -> Conjunction:
        return [condition for each in self._filters for condition in each.conditions()]

    def _count(self, split: FileSplit) -> int:
        if (known := self.known_count(split)) is not None:
            return known
        return sum(batch.num_rows for batch in self._read(split, self._state.schema.fields[:1]))

    def _read(self, split: FileSplit, wanted: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        file, deletes = split.file, self._deleted.equality(split)
        named = {name for each in self._filters for name in each.columns}
        filtered = columns_with(self._state.schema, named)
        fields = read_fields((*wanted, *filtered), deletes)
        self.report.opened(file.size_bytes)
        batches = self._files.read(
            file.path,
            file.format,
            list(fields.values()),
            row_count=file.record_count,
            keep=self._deleted.keep(split),
            constants=dict(file.constants),
            lineage=Lineage(file.first_row_id, file.sequence_number),
            pruning=RowGroupPruning(
                self._conditions, condition_fields(self._state.schema), self.report
            ),
        )
        places = {field_id: place for place, field_id in enumerate(fields)}
        for batch in batches:
            left = batch
            for each in self._filters:
                left = left.filter(each.mask(left))
            for delete in deletes:
                gone = delete.deleted(left, places, file.sequence_number)
                left = left.filter(array_of(~gone)) if gone.any() else left
            if left.num_rows:
                yield left.select(list(range(len(wanted)))) if len(fields) > len(wanted) else left
