# SPDX-License-Identifier: Apache-2.0
"""Scans of a Mixed table: the rows of both stores, merged node by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.read.file_rows import POSITION
from lakeformat.iceberg.read.scan import Scan
from lakeformat.iceberg.types import Field
from lakeformat.mixed.read.explain import MixedScanPlan, explain_nodes
from lakeformat.mixed.read.live_rows import live_rows
from lakeformat.mixed.read.node_deletes import NodeDeletes
from lakeformat.mixed.read.node_splits import MixedPlan, NodeSplit, plan_nodes
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.rows.groups import Positions
from lakeformat.tables.results import Results, total_up_to
from lakeformat.tables.scan_arguments import limited, project
from lakeformat.tables.scan_report import ScanReport

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
        self._fields: tuple[Field, ...] = project(state.schema.fields, columns, each_once=True)
        self._where = where
        self._limit = limit
        self._base = Scan(state.base, None, where)
        self._change = Scan(state.change, None, where)
        self.report = ScanReport()
        """Counts of what the scan has read so far."""
        self._base.report = self._change.report = self.report

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the plan and without deletes in memory."""
        kept = self.__dict__.items()
        return {name: value for name, value in kept if name not in ("_plan", "_deletes")}

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
        """The bytes that one task should read, and the least size that is assumed for a file."""
        return self._base.split_sizes

    def splits(self) -> list[NodeSplit]:
        """Return the splits of the scan, which can be read in any order and on any machine.

        A limit applies to each split separately.
        """
        return [*self._plan.splits]

    def read(self, split: NodeSplit) -> Iterator[pa.RecordBatch]:
        """Stream the rows of one split of this scan, or of a scan with the same arguments.

        Raise ``InvalidRequestError`` for a split of other snapshots.
        """
        if split.snapshot_ids != self._state.snapshot_ids:
            raise InvalidRequestError(
                f"the split belongs to the snapshots {split.snapshot_ids} of base and change "
                f"store, but this scan reads {self._state.snapshot_ids}: read it with the scan "
                "that made it, or with table.scan(snapshot=…) at the position of that scan"
            )
        yield from limited(self._read(split, self._fields), self._limit)

    def positions(self, split: NodeSplit) -> Iterator[Positions]:
        """Yield the row numbers of the live rows in a file, in ascending order.

        The split must have exactly one file.
        """
        for batch in self._read(split, (POSITION,)):
            yield batch.column(0).to_numpy()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the rows. Memory holds about one row group of one file, and deletes of a node."""
        splits = [] if self._limit == 0 else self.splits()
        files = (each for split in splits for each in split.files)
        self._base.expect(each.split for each in files if not each.in_change)
        batches = (batch for split in splits for batch in self._read(split, self._fields))
        yield from limited(batches, self._limit)

    def count(self) -> int:
        """Return the number of rows.

        In a scan without conditions, nodes without deletes are counted from metadata.
        """
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
    def _deletes(self) -> NodeDeletes:
        return NodeDeletes(self._state, self.report)

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
        def read(file: StoreFile, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
            return self._scan_of(file).read_fields(file.split, fields)

        state = self._state
        parts = self._deletes.parts(split.deletes, split.base_versions)
        return live_rows(split.files, parts, state.key, wanted, read, version=state.version)
