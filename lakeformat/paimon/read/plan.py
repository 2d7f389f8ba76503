# SPDX-License-Identifier: Apache-2.0
"""Planning of scans: the live data files of one snapshot, merged from manifests and pruned.

Planning works on columns; Python objects are created only for the resulting files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.binary_row import decode_columns
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle, require_allowed
from lakeformat.paimon.metadata.manifest import (
    ManifestColumns,
    ManifestEntry,
    live_rows,
    read_manifests,
)
from lakeformat.paimon.metadata.manifest_columns.columns import Positions
from lakeformat.paimon.metadata.manifest_list import manifests_of
from lakeformat.paimon.metadata.referrer import naming_row
from lakeformat.paimon.metadata.schema_file import read_schema, require_schema_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.read.pruning.entries import EntryPruner, SchemaReader
from lakeformat.paimon.read.row_ranges import joins_columns, shares_rows
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.prune import ColumnTest, Conjunction, Mask, conjunctions
from lakeformat.types.arrow_memory import numbers

__all__ = [
    "BucketRows",
    "FilePlan",
    "find_manifest",
    "naming_file",
    "naming_partition",
    "plan_columns",
    "plan_files",
]


@dataclass(frozen=True, slots=True)
class BucketRows:
    """The files of a plan grouped by partition and bucket; each group in commit order."""

    rows: Positions
    """Positions of files in the plan, group after group; the group with the earliest file is
    first.
    """
    starts: Positions
    """The position in ``rows`` where each group starts; the group ends where the next group starts.
    """


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The live files of a snapshot that may have rows meeting all conditions, in commit order."""

    columns: ManifestColumns
    manifests: int
    """The number of manifests of the snapshot, read or skipped."""
    manifests_read: int
    left_out_by_index: int = 0
    """The number of files that are excluded only by their file index."""

    def buckets(self) -> BucketRows:
        """Group the files by partition and bucket."""
        columns = self.columns
        partition = numbers(columns.partition.to_arrow().dictionary_encode().indices)
        _, bucket = np.unique(columns.bucket.numbers, return_inverse=True)
        places = partition.astype(np.int64) * (int(bucket.max(initial=0)) + 1) + bucket
        by_place = np.argsort(places, kind="stable")
        changes = np.flatnonzero(np.diff(places[by_place])) + 1
        starts = np.concatenate(([0], changes)) if len(columns) else changes
        return _in_commit_order(by_place, starts)

    def places(self) -> list[Positions]:
        """Return, for each bucket, the positions of its files in the plan."""
        groups = self.buckets()
        return np.split(groups.rows, groups.starts[1:]) if len(self.columns) else []

    def entries(self) -> list[ManifestEntry]:
        """Return the files as ManifestEntry objects."""
        return self.columns.entries()


def plan_files(
    handle: TableHandle, snapshot: Snapshot, *, conditions: Conjunction = ()
) -> list[ManifestEntry]:
    """Return the live files that may hold rows meeting all conditions, in commit order."""
    require_allowed(handle, Operation.READ)
    return plan_columns(handle, snapshot, conditions=conditions).entries()


def find_manifest(handle: TableHandle, snapshot: Snapshot, entry: ManifestEntry) -> str:
    """Return, for an error message, the URI of the newest manifest with this entry.

    If no manifest has it, return a text with the number of the snapshot.
    """
    source = _source(handle, snapshot)
    try:
        for manifest in reversed(manifests_of(handle.storage, handle.layout, snapshot)):
            columns = read_manifests(handle.storage, handle.layout, [manifest])
            names = columns.file_name.texts()
            same = [row for row, name in enumerate(names) if name == entry.file.file_name]
            for found in columns.entries(np.array(same, np.int64)):
                if (found.kind, found.identity) == (entry.kind, entry.identity):
                    return handle.storage.uri(handle.layout.manifest(manifest.file_name))
    except CorruptTableError:  # the manifest is missing: the original error is raised
        return source
    return source


def plan_columns(
    handle: TableHandle,
    snapshot: Snapshot,
    *,
    conditions: Conjunction = (),
    buckets: Collection[int] | None = None,
) -> FilePlan:
    """Return the live files in ``buckets`` that may have rows meeting all conditions.

    ``buckets=None`` means all buckets.
    """
    schemas = _schema_reader(handle)
    pruner = EntryPruner(handle.schema, conditions, buckets, schemas)
    require_schema_of(handle.storage, handle.layout, snapshot, known=handle.schema.id)
    with explaining_expiry(handle, snapshot):
        manifests = manifests_of(handle.storage, handle.layout, snapshot)
    with naming_row(
        len(manifests),
        lambda row: pruner.pick_manifests([manifests[row]]),
        lambda row: f"_PARTITION_STATS of {manifests[row].file_name} in {manifests[row].named_by}",
    ):
        picked = pruner.pick_manifests(manifests)
    with explaining_expiry(handle, snapshot):
        read = read_manifests(handle.storage, handle.layout, picked)
    # ADD and DELETE of a file share the bucket, but their statistics may differ.
    with naming_file(handle, snapshot, read, "_PARTITION", pruner.by_place):
        there = read.filter(pruner.by_place(read))
    rows = live_rows(there, _source(handle, snapshot))
    live = there if len(rows) == len(there) else there.take(rows)
    plan = FilePlan(live, len(manifests), len(picked))
    if not conditions or not len(live):
        return plan
    groups = [
        [_left_in(handle, snapshot, asked, live, schemas) for asked in lists]
        for lists in conjunctions(conditions)
    ]
    by_statistics = _in_each(groups, 0)
    kept = _in_each(groups, 1)
    if joins_columns(handle.schema):
        by_statistics, kept = (mask | shares_rows(live) for mask in (by_statistics, kept))
    return replace(
        plan,
        columns=_filtered(live, kept),
        left_out_by_index=int((by_statistics & ~kept).sum()),
    )


def _in_each(groups: Sequence[Sequence[tuple[Mask, Mask]]], which: int) -> Mask:
    """Return a mask of the files that every group keeps.

    A group keeps a file if at least one of its alternatives does. An alternative has two masks;
    ``which`` selects the first (0) or the second (1).
    """
    found: Mask = np.logical_and.reduce(
        [np.logical_or.reduce([masks[which] for masks in lists]) for lists in groups]
    )
    return found


def _left_in(
    handle: TableHandle,
    snapshot: Snapshot,
    asked: Sequence[ColumnTest],
    live: ManifestColumns,
    schemas: SchemaReader,
) -> tuple[Mask, Mask]:
    """Return two masks of the files ``live`` that may have rows meeting the conditions ``asked``.

    The first mask uses statistics, the second also file indexes. If a row that may meet the
    conditions has several versions to merge, the files of all its versions are kept. So the files
    that are kept for different branches of an OR can be read together.
    """
    pruner = EntryPruner(handle.schema, asked, None, schemas)
    with naming_file(handle, snapshot, live, "the statistics", pruner.by_statistics):
        kept = pruner.by_place(live) & pruner.by_statistics(live)
    found = FilePlan(_filtered(live, kept), 0, 0)
    if handle.schema.primary_keys and len(found.columns):
        with naming_file(
            handle, snapshot, found.columns, "the statistics", partial(pruner.by_merged_values, [])
        ):
            there = pruner.by_merged_values(found.places(), found.columns)
        kept[kept] = there
        found = replace(found, columns=_filtered(found.columns, there))
    by_indexes = kept.copy()
    if len(found.columns):
        by_indexes[kept] = _by_indexes(handle, snapshot, asked, found)
    return kept, by_indexes


def _filtered(columns: ManifestColumns, mask: Mask) -> ManifestColumns:
    return columns if mask.all() else columns.filter(mask)


def _by_indexes(
    handle: TableHandle, snapshot: Snapshot, conditions: Sequence[ColumnTest], plan: FilePlan
) -> Mask:
    """Return a mask of the files of the plan that their file indexes do not exclude."""
    from lakeformat.paimon.read.pruning.file_indexes import IndexPruner  # only for conditions

    def named_by(entry: ManifestEntry) -> str:
        return f"{find_manifest(handle, snapshot, entry)} of snapshot {snapshot.id}"

    pruner = IndexPruner(handle, conditions, _schema_reader(handle), named_by)
    return pruner.mask(plan.columns, plan.places)


def naming_file(
    handle: TableHandle,
    snapshot: Snapshot,
    columns: ManifestColumns,
    what: str,
    again: Callable[[ManifestColumns], object],
) -> AbstractContextManager[None]:
    """Add the data file and its manifest to a CorruptTableError about a value of an entry.

    ``what`` is the name of the value. To find the damaged row after an error, ``again`` is called
    with one row of ``columns`` at a time, and decodes the value of this row.
    """

    def name(row: int) -> str:
        [entry] = columns.entries(np.array([row]))
        where = find_manifest(handle, snapshot, entry)
        return f"{what} of data file {entry.file.file_name} in {where}"

    return naming_row(len(columns), lambda row: again(columns.take(np.array([row]))), name)


@contextmanager
def naming_partition(handle: TableHandle, snapshot: Snapshot) -> Iterator[None]:
    """Add the data file and its manifest to a CorruptTableError about a damaged partition.

    After an error, the partitions of all entries of ``snapshot`` are decoded until a damaged one is
    found. If none is damaged, the URI of the table is added to the error.
    """
    try:
        yield
    except CorruptTableError as reason:
        if handle.uri in str(reason):
            raise
        _decode_partitions(handle, snapshot)
        raise CorruptTableError(f"{handle.uri}: {reason}") from reason


def _decode_partitions(handle: TableHandle, snapshot: Snapshot) -> None:
    types = [field.type for field in partition_fields(handle.schema)]

    def decode(columns: ManifestColumns) -> None:
        decode_columns(columns.partition.to_arrow(), types)

    manifests = manifests_of(handle.storage, handle.layout, snapshot)
    found = read_manifests(handle.storage, handle.layout, manifests)
    with naming_file(handle, snapshot, found, "_PARTITION", decode):
        decode(found)


def _source(handle: TableHandle, snapshot: Snapshot) -> str:
    return f"snapshot {snapshot.id} of {handle.uri}"


def _schema_reader(handle: TableHandle) -> SchemaReader:
    @cache
    def read(schema_id: int) -> TableSchema:
        if schema_id == handle.schema.id:
            return handle.schema
        return read_schema(handle.storage, handle.layout, schema_id)

    return read


def _in_commit_order(by_place: Positions, starts: Positions) -> BucketRows:
    """Return the groups of files, sorted by the position of the first file of each group.

    ``by_place`` has the positions of files, group after group; a group begins at each of
    ``starts``.
    """
    order = np.argsort(by_place[starts])
    sizes = np.diff(np.append(starts, len(by_place)))[order]
    ends = np.cumsum(sizes)
    places = np.repeat(starts[order] - (ends - sizes), sizes) + np.arange(len(by_place))
    return BucketRows(by_place[places], ends - sizes)
