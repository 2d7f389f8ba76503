# SPDX-License-Identifier: Apache-2.0
"""Plans a scan: the live data files of a snapshot that may hold wanted rows, with their deletes.

Manifests and entries are pruned as columns; Python objects are created only for the resulting
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.manifest import (
    ADDED,
    EQUALITY_DELETES,
    live_entries,
    read_entries,
)
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.read.data_file import DataFile, FileSplit
from lakeformat.iceberg.read.delete_index import DeleteIndex, file_format
from lakeformat.iceberg.read.entry_columns import EntryColumns, partition_columns, scopes
from lakeformat.iceberg.read.file_pruning import (
    PartitionSummaries,
    by_partition,
    by_statistics,
    by_summary,
)
from lakeformat.iceberg.read.key_ranges import KeyRanges, ranges_of
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.transforms import TransformKind, parse_transform
from lakeformat.iceberg.types import Field
from lakeformat.rows.prune import Conjunction, Mask, on_columns
from lakeformat.types.arrow_memory import array_of

__all__ = [
    "FilePlan",
    "TableState",
    "all_fields",
    "plan_added_files",
    "plan_files",
    "plan_splits",
]

_DATA, _DELETES = 0, 1
"""The values of ``content`` in a manifest list."""
_FILE_COLUMNS = (
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "sequence_number",
    "first_row_id",
)


@dataclass(frozen=True, slots=True)
class TableState:
    """A snapshot of a table, and the schema it is read with."""

    places: FilePlaces
    metadata: TableMetadata
    snapshot: Snapshot | None
    """None before the first commit."""
    schema: Schema


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files that are left after each level of pruning."""

    manifests: int = 0
    """Number of manifests with data files."""
    manifests_read: int = 0
    files: int | None = 0
    """Live data files of the snapshot; None if the manifest list does not count them."""
    files_in_manifests: int = 0
    """Live data files in the manifests that were read."""
    left_by_partition: int = 0
    """Data files whose partition may hold wanted rows."""
    entries: tuple[pa.Table, ...] = ()
    """The data files whose statistics allow wanted rows, one table for each spec."""
    deletes: tuple[pa.Table, ...] = ()
    """The delete files that may delete such rows."""

    @property
    def files_to_read(self) -> int:
        """The number of data files that are left."""
        return sum(table.num_rows for table in self.entries)


def plan_files(
    state: TableState, conditions: Conjunction = (), manifests: pa.Table | None = None
) -> FilePlan:
    """Plan the live files that may hold rows meeting all conditions.

    ``manifests`` are those to read, if not all of the snapshot.
    """
    if state.snapshot is None:
        return FilePlan()
    if manifests is None:
        manifests = read_manifest_list(state.places, state.snapshot)
    planner = _Planner(state, conditions)
    data = manifests.filter(pc.equal(manifests.column("content"), _DATA))
    plan = planner.plan(data, _files_in(data, "added", "existing"), *planner.entries(data))
    if not plan.entries:
        return plan
    _, found = planner.entries(manifests.filter(pc.equal(manifests.column("content"), _DELETES)))
    deletes = (planner.of_wanted_rows(planner.in_partitions(table)) for table in found)
    return replace(plan, deletes=tuple(table for table in deletes if table.num_rows))


def plan_added_files(
    state: TableState, snapshots: Sequence[Snapshot], conditions: Conjunction = ()
) -> FilePlan:
    """Plan the data files that these snapshots added and that may hold rows meeting all
    conditions; later deletes do not apply to them.
    """
    if not snapshots:
        return FilePlan()
    planner = _Planner(state, conditions)
    manifests = pa.concat_tables([_added_manifests(state, each) for each in snapshots])
    read, live = planner.entries(manifests)
    ids = pa.array([each.snapshot_id for each in snapshots], pa.int64())
    entries = [table.filter(_added_by(table, ids)) for table in live]
    counted = _files_in(manifests, "added")
    files = sum(table.num_rows for table in entries) if counted is None else counted
    return planner.plan(manifests, files, read, entries)


def _added_manifests(state: TableState, snapshot: Snapshot) -> pa.Table:
    """Return the manifests of data files that a snapshot wrote."""
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

    def entries(self, manifests: pa.Table) -> tuple[int, list[pa.Table]]:
        """Return the number of manifests that may matter, and their live entries by spec."""
        picked = manifests.filter(array_of(self._picked(manifests)))
        found = read_entries(self.state.places, self.state.metadata, picked)
        # One chunk, because thousands of small manifests are thousands of chunks.
        return picked.num_rows, [live_entries(t).combine_chunks() for t in found.values()]

    def plan(
        self, manifests: pa.Table, files: int | None, read: int, entries: Sequence[pa.Table]
    ) -> FilePlan:
        """Return the plan of data files, whose deletes are not yet known."""
        in_partitions = [self.in_partitions(table) for table in entries]
        left = [self.by_statistics(table) for table in in_partitions]
        found = sum(table.num_rows for table in entries)
        return FilePlan(
            manifests.num_rows,
            read,
            files,
            found,
            sum(table.num_rows for table in in_partitions),
            tuple(table for table in left if table.num_rows),
        )

    def in_partitions(self, entries: pa.Table) -> pa.Table:
        if not self.conditions or not entries.num_rows:
            return entries
        mask = by_partition(
            self.conditions,
            _spec_of(self.state, entries),
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
        """Leave out equality deletes whose keys are outside the conditions on their columns."""
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
        live = pc.add(*counts)  # null if one of them is not known
        mask &= pc.fill_null(pc.not_equal(live, 0), True).to_numpy()
        if not self.conditions:
            return mask
        specs = manifests.column("partition_spec_id").to_numpy()
        for spec_id in np.unique(specs[mask]):
            rows = np.flatnonzero(mask & (specs == spec_id))
            spec = self.state.metadata.spec_of(int(spec_id))
            summaries = _summaries(manifests.take(array_of(rows)), len(spec.fields))
            mask[rows] = by_summary(self.conditions, spec, self.state.schema, summaries, len(rows))
        return mask


def _summaries(manifests: pa.Table, fields: int) -> list[PartitionSummaries]:
    """Return the summaries of each partition field; unknown for manifests without summaries."""
    lists = manifests.column("partitions").combine_chunks()
    starts = lists.offsets.to_numpy()[:-1]
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    found = []
    for place in range(fields):
        known = sizes > place
        parts = lists.values.take(pc.if_else(array_of(known), array_of(starts + place), None))
        null, nan, lower, upper = parts.flatten()
        # Without a summary, a partition may be null, NaN or any value.
        found.append(PartitionSummaries(null, nan, lower, upper))
    return found


def _files_in(manifests: pa.Table, *kinds: str) -> int | None:
    """Return the number of files of these kinds; None if a manifest list does not count them."""
    counts = [manifests.column(f"{kind}_files_count") for kind in kinds]
    if any(each.null_count for each in counts):
        return None
    return sum(int(pc.sum(each).as_py() or 0) for each in counts)


def _filtered(entries: pa.Table, mask: Mask) -> pa.Table:
    return entries if mask.all() else entries.filter(array_of(mask))


def all_fields(metadata: TableMetadata) -> dict[int, Field]:
    """Return every column that the table has or had, in its newest type, by id."""
    found: dict[int, Field] = {}
    older = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
    for schema in (*older, metadata.schema):
        found |= {each.id: each for each in schema.fields}
    return found


def plan_splits(state: TableState, plan: FilePlan) -> list[FileSplit]:
    """Return a split for each data file of a plan, with the deletes that apply to it."""
    index = DeleteIndex(all_fields(state.metadata))
    for table in plan.deletes:
        index.add(table, _spec_of(state, table))
    index.sort()
    return [split for table in plan.entries for split in _splits(state, table, index)]


def _splits(state: TableState, entries: pa.Table, index: DeleteIndex) -> Iterator[FileSplit]:
    assert state.snapshot is not None
    fields = [index.fields[each] for each in index.key_ids if each in index.fields]
    if fields:
        entries = _by_scope(entries)
    per_file = zip(
        entries.select(_FILE_COLUMNS).to_pylist(),
        _constants(_spec_of(state, entries), entries),
        scopes(entries) if index.files else repeat(""),
        ranges_of(EntryColumns(entries), fields) if fields else repeat(KeyRanges({})),
        strict=False,  # of endless repetitions
    )
    for row, constants, scope, keys in per_file:
        file = DataFile(
            row["file_path"],
            file_format(row["file_format"], row["file_path"]),
            row["record_count"] if row["record_count"] >= 0 else None,
            row["file_size_in_bytes"],
            row["sequence_number"],
            row["first_row_id"],
            constants,
        )
        deletes = index.find(file, scope, keys) if index.files else ()
        yield FileSplit(state.snapshot.snapshot_id, file, deletes)


def _by_scope(entries: pa.Table) -> pa.Table:
    """Return the entries of each partition after each other, so that its keys are read once."""
    places: dict[str, int] = {}
    order = [places.setdefault(scope, len(places)) for scope in scopes(entries)]
    return entries.take(array_of(np.argsort(np.array(order, np.int64), kind="stable")))


def _constants(
    spec: PartitionSpec, entries: pa.Table
) -> Iterator[tuple[tuple[int, pa.Scalar], ...]]:
    """Yield the values of identity partitions by the id of their column, for each file."""
    columns = partition_columns(entries)
    kept = [
        (field.source_id, columns[place])
        for place, field in enumerate(spec.fields)
        if parse_transform(field.transform).kind is TransformKind.IDENTITY
    ]
    for row in range(entries.num_rows):
        yield tuple((field_id, values[row]) for field_id, values in kept)


def _spec_of(state: TableState, entries: pa.Table) -> PartitionSpec:
    return state.metadata.spec_of(entries.column("spec_id")[0].as_py())
