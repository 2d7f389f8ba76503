# SPDX-License-Identifier: Apache-2.0
"""Plans a scan: the live data files that may have matching rows, and the delete files for them.

Manifests and their entries are pruned as Arrow columns. Python objects are created only for the
files that remain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.manifest import (
    ADDED,
    EQUALITY_DELETES,
    live_entries,
    read_each,
    read_entries,
)
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.entry_columns import EntryColumns, partition_columns, spec_of
from lakeformat.iceberg.read.file_pruning import (
    PartitionSummaries,
    by_partition,
    by_statistics,
    by_summary,
)
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field
from lakeformat.rows.prune import Conjunction, Mask, conjunctions, on_columns
from lakeformat.types.arrow_memory import array_of

__all__ = [
    "FilePlan",
    "TableState",
    "all_fields",
    "plan_added_files",
    "plan_deletes",
    "plan_files",
]

_AT_ONCE = 4096
"""The number of entries that are pruned together; pruning each small manifest alone is slow."""
_DATA, _DELETES = 0, 1
"""The values of ``content`` in a manifest list: data files, delete files."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A snapshot of a table, and the schema with which it is read."""

    places: FilePlaces
    metadata: TableMetadata
    snapshot: Snapshot | None
    """None for a state without published rows, such as that before the first snapshot."""
    schema: Schema


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The data files that remain after pruning, with their delete files.

    The numbers show how many manifests and files each step of the pruning left.
    """

    manifests: int = 0
    """The number of manifests of data files."""
    manifests_read: int = 0
    files: int | None = 0
    """The number of live data files before pruning; None if the manifest list does not count them.
    """
    files_in_manifests: int = 0
    """The number of live data files in the manifests that were read."""
    left_by_partition: int = 0
    """The number of data files whose partition may have matching rows."""
    entries: tuple[pa.Table, ...] = ()
    """The data files whose statistics allow matching rows, as one table for each partition spec."""
    deletes: tuple[pa.Table, ...] = ()
    """The delete files that may apply to rows in these data files."""

    @property
    def files_to_read(self) -> int:
        """The number of data files to read."""
        return sum(table.num_rows for table in self.entries)


def plan_files(
    state: TableState,
    conditions: Conjunction = (),
    manifests: pa.Table | None = None,
    *,
    statistics_of: Collection[int] = (),
) -> FilePlan:
    """Plan the live data files that may have rows that meet all conditions.

    ``manifests`` are rows of a manifest list; by default all manifests of the snapshot. The entries
    of the plan have the statistics of the columns with the ids ``statistics_of``. Statistics of
    other columns may be missing.
    """
    if state.snapshot is None:
        return FilePlan()
    if manifests is None:
        manifests = read_manifest_list(state.places, state.snapshot)
    planner = _Planner(state, conditions)
    found = planner.deletes(manifests.filter(pc.equal(manifests.column("content"), _DELETES)))
    data = manifests.filter(pc.equal(manifests.column("content"), _DATA))
    keys = {*_key_ids(found), *statistics_of}
    plan = planner.plan(data, _files_in(data, "added", "existing"), keys)
    if not plan.entries:
        return plan
    deletes = (planner.of_wanted_rows(planner.in_partitions(table)) for table in found)
    return replace(plan, deletes=tuple(table for table in deletes if table.num_rows))


def plan_deletes(state: TableState) -> tuple[pa.Table, ...]:
    """Return all live delete files of a snapshot, as one table for each partition spec."""
    if state.snapshot is None:
        return ()
    manifests = read_manifest_list(state.places, state.snapshot)
    of_deletes = manifests.filter(pc.equal(manifests.column("content"), _DELETES))
    found = _Planner(state, ()).deletes(of_deletes)
    return tuple(table for table in found if table.num_rows)


def plan_added_files(
    state: TableState, snapshots: Sequence[Snapshot], conditions: Conjunction = ()
) -> FilePlan:
    """Plan the data files that ``snapshots`` added and that may have matching rows.

    A matching row meets all ``conditions``. Delete files are ignored, even those that ``snapshots``
    added.
    """
    if not snapshots:
        return FilePlan()
    planner = _Planner(state, conditions)
    manifests = pa.concat_tables([_added_manifests(state, each) for each in snapshots])
    ids = pa.array([each.snapshot_id for each in snapshots], pa.int64())
    plan = planner.plan(manifests, _files_in(manifests, "added"), added_by=ids)
    return plan if plan.files is not None else replace(plan, files=plan.files_in_manifests)


def _added_manifests(state: TableState, snapshot: Snapshot) -> pa.Table:
    manifests = read_manifest_list(state.places, snapshot)
    is_data = pc.equal(manifests.column("content"), _DATA)
    is_own = pc.equal(manifests.column("added_snapshot_id"), snapshot.snapshot_id)
    return manifests.filter(pc.and_(is_data, is_own))


def _added_by(entries: pa.Table, snapshot_ids: pa.Array) -> pa.ChunkedArray:
    is_added = pc.equal(entries.column("status"), ADDED)
    return pc.and_(is_added, pc.is_in(entries.column("snapshot_id"), snapshot_ids))


@dataclass(frozen=True, slots=True)
class _Planner:
    state: TableState
    conditions: Conjunction

    def deletes(self, manifests: pa.Table) -> list[pa.Table]:
        """Return the live delete files in ``manifests``, as one table for each partition spec.

        Manifests that the conditions exclude are not read.
        """
        picked = manifests.filter(array_of(self._picked(manifests)))
        found = read_entries(self.state.places, self.state.metadata, picked)
        # Combine the chunks, because thousands of small manifests give thousands of chunks.
        return [live_entries(table).combine_chunks() for table in found.values()]

    def plan(
        self,
        manifests: pa.Table,
        files: int | None,
        keys: Collection[int] = (),
        added_by: pa.Array | None = None,
    ) -> FilePlan:
        """Plan the data files of manifests, without delete files.

        ``files`` is the number of live files in ``manifests``, for the report; None if it is
        unknown. The entries also get the statistics of the columns with the ids ``keys``. With
        ``added_by``, the ids of snapshots, only files that these snapshots added are planned.
        """
        picked = manifests.filter(array_of(self._picked(manifests)))
        left: dict[int, list[pa.Table]] = {}
        found = in_partitions = 0
        for spec_id, table in self._batches(picked, {*keys, *self._tested_ids()}):
            entries = live_entries(table)
            if added_by is not None:
                entries = entries.filter(_added_by(entries, added_by))
            found += entries.num_rows
            entries = self.in_partitions(entries)
            in_partitions += entries.num_rows
            entries = self.by_statistics(entries)
            if entries.num_rows:
                left.setdefault(spec_id, []).append(entries)
        planned = tuple(pa.concat_tables(tables).combine_chunks() for tables in left.values())
        return FilePlan(manifests.num_rows, picked.num_rows, files, found, in_partitions, planned)

    def _batches(
        self, manifests: pa.Table, statistics_of: Collection[int]
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the spec id and the entries of manifests; small manifests of one spec are
        combined.
        """
        waiting: dict[int, list[pa.Table]] = {}
        rows: Counter[int] = Counter()
        places, metadata = self.state.places, self.state.metadata
        for spec_id, table in read_each(places, metadata, manifests, statistics_of):
            waiting.setdefault(spec_id, []).append(table)
            rows[spec_id] += table.num_rows
            if rows[spec_id] >= _AT_ONCE:
                yield spec_id, pa.concat_tables(waiting.pop(spec_id)).combine_chunks()
                del rows[spec_id]
        for spec_id, tables in waiting.items():
            yield spec_id, pa.concat_tables(tables).combine_chunks()

    def _tested_ids(self) -> Iterator[int]:
        for lists in conjunctions(self.conditions):
            for test in chain.from_iterable(lists):
                if (field := self.state.schema.named(test.column)) is not None:
                    yield field.id

    def in_partitions(self, entries: pa.Table) -> pa.Table:
        if not self.conditions or not entries.num_rows:
            return entries
        mask = by_partition(
            self.conditions,
            spec_of(self.state.metadata, entries),
            self.state.schema,
            partition_columns(entries),
            entries.num_rows,
        )
        return _filtered(entries, mask)

    def by_statistics(self, entries: pa.Table) -> pa.Table:
        has_rows = pc.not_equal(entries.column("record_count"), 0)
        entries = entries.filter(has_rows)
        if not self.conditions or not entries.num_rows:
            return entries
        found = by_statistics(self.conditions, self.state.schema, EntryColumns(entries))
        return _filtered(entries, found)

    def of_wanted_rows(self, deletes: pa.Table) -> pa.Table:
        """Return the delete files, except equality deletes whose keys cannot meet the
        conditions.
        """
        if not self.conditions or not deletes.num_rows:
            return deletes
        mask = np.ones(deletes.num_rows, np.bool_)
        keys = deletes.column("equality_ids").to_pylist()
        is_equality = np.array(deletes.column("content").to_numpy() == EQUALITY_DELETES)
        for ids in {tuple(each) for each in keys if each}:
            names = {self.state.schema.name_of(each) for each in ids}
            asked = on_columns(self.conditions, {name for name in names if name is not None})
            same = is_equality & np.array([tuple(each or ()) == ids for each in keys], np.bool_)
            rows = np.flatnonzero(same)
            chosen = EntryColumns(deletes.take(array_of(rows)))
            mask[rows] = by_statistics(asked, self.state.schema, chosen)
        return _filtered(deletes, mask)

    def _picked(self, manifests: pa.Table) -> Mask:
        mask = np.ones(manifests.num_rows, np.bool_)
        counts = [manifests.column(f"{kind}_files_count") for kind in ("added", "existing")]
        live = pc.add(*counts)  # null if one of the counts is unknown
        mask &= pc.fill_null(pc.not_equal(live, 0), True).to_numpy()
        if not self.conditions:
            return mask
        specs = manifests.column("partition_spec_id").to_numpy()
        known = {each.spec_id for each in self.state.metadata.partition_specs}
        for spec_id in np.unique(specs[mask]):
            if spec_id not in known:
                continue  # reading the manifest raises the error
            rows = np.flatnonzero(mask & (specs == spec_id))
            spec = self.state.metadata.spec_of(int(spec_id))
            summaries = _summaries(manifests.take(array_of(rows)), len(spec.fields))
            mask[rows] = by_summary(self.conditions, spec, self.state.schema, summaries, len(rows))
        return mask


def _summaries(manifests: pa.Table, fields: int) -> list[PartitionSummaries]:
    """Return the summaries of each partition field; null for manifests without summaries."""
    lists = manifests.column("partitions").combine_chunks()
    starts = lists.offsets.to_numpy()[:-1]
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    found = []
    for place in range(fields):
        known = sizes > place
        parts = lists.values.take(pc.if_else(array_of(known), array_of(starts + place), None))
        null, nan, lower, upper = parts.flatten()
        # A null summary means that the partition may be null, NaN or any value.
        found.append(PartitionSummaries(null, nan, lower, upper))
    return found


def _key_ids(deletes: Sequence[pa.Table]) -> set[int]:
    lists = [table.column("equality_ids") for table in deletes]
    return {each for column in lists for each in pc.list_flatten(column).unique().to_pylist()}


def _files_in(manifests: pa.Table, *kinds: str) -> int | None:
    """Return the number of files that ``manifests`` list as ``kinds``: ``added`` or ``existing``.

    Return None if a manifest has no count of one of the kinds.
    """
    counts = [manifests.column(f"{kind}_files_count") for kind in kinds]
    if any(each.null_count for each in counts):
        return None
    return sum(int(pc.sum(each).as_py() or 0) for each in counts)


def _filtered(entries: pa.Table, mask: Mask) -> pa.Table:
    return entries if mask.all() else entries.filter(array_of(mask))


def all_fields(metadata: TableMetadata) -> dict[int, Field]:
    """Return every column that the table has or had, with its newest type, by id."""
    found: dict[int, Field] = {}
    older = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
    for schema in (*older, metadata.schema):
        found |= {each.id: each for each in schema.fields}
    return found
