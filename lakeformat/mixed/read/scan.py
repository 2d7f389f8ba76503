# SPDX-License-Identifier: Apache-2.0
"""Scans of a Mixed table: the rows of both stores, merged node by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.read.file_rows import POSITION, file_rows_of
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.types import Field
from lakeformat.mixed.read.explain import MixedScanPlan, explain_nodes
from lakeformat.mixed.read.key_deletes import KeyDeletes
from lakeformat.mixed.read.node_splits import MixedPlan, NodeSplit, plan_nodes
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile
from lakeformat.mixed.stores.file_offset import FILE_OFFSET
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.rows.groups import Positions
from lakeformat.tables.results import Results, total_up_to
from lakeformat.tables.scan_arguments import limited, project
from lakeformat.tables.scan_report import ScanReport
from lakeformat.types.arrow_memory import array_of

__all__ = ["MixedScan"]


class MixedScan(Results):
    """The merged rows of a state of the table; nothing is read until you ask for a result."""

    def __init__(
        self,
        state: MixedState,
        columns: Sequence[str] | None = None,
        where: PredicateFilter | None = None,
        limit: int | None = None,
    ) -> None:
        self._state = state
        self._fields: tuple[Field, ...] = project(state.schema.fields, columns)
        self._where = where
        self._limit = limit
        self._base = Scan(state.base, None, where)
        self._change = Scan(state.change, None, where)
        self.report = ScanReport()
        """Counts of what the scan has read so far."""
        self._base.report = self._change.report = self.report

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling; the plan and read deletes are left out."""
        kept = self.__dict__.items()
        return {name: value for name, value in kept if name not in ("_plan", "_read_deletes")}

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return pa.schema([to_arrow_field(field) for field in self._fields])

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the rows with their Iceberg types."""
        return self._fields

    @property
    def position(self) -> str:
        """The position of the scanned state."""
        return str(self._state.position)

    @property
    def split_sizes(self) -> tuple[int, int]:
        """The bytes that one task should read, and the smallest size that a split is counted
        with.
        """
        return self._base.split_sizes

    def splits(self) -> list[NodeSplit]:
        """Return the splits of the scan, which can be read in any order and on any machine.

        A limit applies to each split separately.
        """
        return [*self._plan.splits]

    def read(self, split: NodeSplit) -> Iterator[pa.RecordBatch]:
        """Stream the rows of one split, from this scan or from one with the same arguments."""
        if split.snapshot_ids != self._state.snapshot_ids:
            raise InvalidRequestError(
                f"the split belongs to the snapshots {split.snapshot_ids} of base and change "
                f"store, but this scan reads {self._state.snapshot_ids}: read it with the scan "
                "that made it, or with table.scan(snapshot=…) at the position of that scan"
            )
        yield from limited(self._read(split, self._fields), self._limit)

    def positions(self, split: NodeSplit) -> Iterator[Positions]:
        """Yield the positions of the live rows of a split that has one file, in ascending order."""
        for batch in self._read(split, (POSITION,)):
            yield batch.column(0).to_numpy()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows. Memory holds one row group of one file, and the deletes of one node."""
        splits = [] if self._limit == 0 else self.splits()
        files = (each for split in splits for each in split.files)
        self._base.expect(each.split for each in files if not each.in_change)
        batches = (batch for split in splits for batch in self._read(split, self._fields))
        yield from limited(batches, self._limit)

    def count(self) -> int:
        """Return the number of rows; from metadata for nodes without conditions and deletes."""
        return total_up_to(self._limit, map(self._count, self.splits()))

    def explain(self) -> MixedScanPlan:
        """Explain what the scan would read of each store. No data file is read."""
        return explain_nodes(self._state, self._plan)

    @cached_property
    def _plan(self) -> MixedPlan:
        asked = [] if self._where is None else self._where.conjuncts()
        conditions = [condition for each in asked for condition in each.conditions()]
        return plan_nodes(self._state, conditions)

    @cached_property
    def _read_deletes(self) -> dict[str, pa.Table]:
        """The deletes that were read for the last split, by path; the next one may share some."""
        return {}

    def known_count(self, split: NodeSplit) -> int | None:
        """Return the number of rows of a split if metadata has it; None if the rows must be
        read.
        """
        if split.deletes:
            return None
        found = 0
        for file in split.files:
            known = self._scan_of(file).known_count(file.split)
            if known is None:
                return None
            found += known
        return found

    def _count(self, split: NodeSplit) -> int:
        if (known := self.known_count(split)) is not None:
            return known
        return sum(batch.num_rows for batch in self._read(split, self._state.key[:1]))

    def _scan_of(self, file: StoreFile) -> Scan:
        return self._change if file.in_change else self._base

    def _read(self, split: NodeSplit, wanted: Sequence[Field]) -> Iterator[pa.RecordBatch]:
        """Stream the wanted columns of the rows that no newer delete of their key deletes."""
        deletes = self._deletes(split.deletes)
        for file in split.files:
            if deletes is None:
                yield from self._scan_of(file).read_fields(file.split, wanted)
            else:
                yield from self._live(file, deletes, wanted)

    def _live(
        self, file: StoreFile, deletes: KeyDeletes, wanted: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        fields = {each.id: each for each in wanted}
        needed = (*self._state.key, *((FILE_OFFSET,) if file.in_change else ()))
        fields |= {each.id: each for each in needed if each.id not in fields}
        places = {field_id: place for place, field_id in enumerate(fields)}
        batches = self._scan_of(file).read_fields(file.split, [*fields.values()])
        for batch in batches:
            offsets = None
            if file.in_change:
                offsets = _offsets(batch.column(places[FILE_OFFSET.id]), file.path)
            keys = [batch.column(places[each.id]) for each in self._state.key]
            gone = deletes.deleted(keys, file.transaction, offsets)
            left = batch.filter(array_of(~gone)) if gone.any() else batch
            if left.num_rows:
                yield left.select([*range(len(wanted))])

    def _deletes(self, files: Sequence[StoreFile]) -> KeyDeletes | None:
        """Return the deletes of some files; None if they delete no row."""
        known = self._read_deletes
        tables = {each.path: known.get(each.path) for each in files}
        for each in files:
            if tables[each.path] is None:
                tables[each.path] = self._delete_rows(each)
        known.clear()
        known.update((path, table) for path, table in tables.items() if table is not None)
        found = [known[each.path] for each in files]
        if not sum(table.num_rows for table in found):
            return None
        counts = [table.num_rows for table in found]
        transactions = np.repeat(np.array([each.transaction for each in files], np.int64), counts)
        rows = pa.concat_tables(found).combine_chunks()
        *keys, offsets = [column.combine_chunks() for column in rows.columns]
        return KeyDeletes(keys, transactions, offsets.to_numpy())

    def _delete_rows(self, file: StoreFile) -> pa.Table:
        """Return the keys and offsets of the rows of a file of deletes."""
        state, stored = self._state, file.split.file
        self.report.opened(stored.size_bytes)
        fields = (*state.key, FILE_OFFSET)
        files = file_rows_of(state.change.places, state.change.metadata.properties)
        batches = files.read(
            stored.path,
            stored.format,
            fields,
            row_count=stored.record_count,
            constants=dict(stored.constants),
        )
        schema = pa.schema([to_arrow_field(each) for each in fields])
        found = pa.Table.from_batches(batches, schema)
        _offsets(found.column(FILE_OFFSET.name), file.path)
        return found


def _offsets(column: pa.Array | pa.ChunkedArray, path: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    if column.null_count:
        raise CorruptTableError(
            f"{path} has changes without a value in {FILE_OFFSET.name}, so their order is unknown: "
            "restore the file from a backup"
        )
    return np.asarray(column.to_numpy(), np.int64)
