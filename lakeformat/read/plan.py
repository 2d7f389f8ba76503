"""Which data files a scan reads: the manifests of one snapshot, merged and pruned.

Planning works on columns; Python objects are made of the files that are asked for in the end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

import numpy as np

from lakeformat.errors import UnsupportedError
from lakeformat.handle import TableHandle, require_readable
from lakeformat.metadata.manifest import (
    ManifestColumns,
    ManifestEntry,
    live_rows,
    read_manifests,
)
from lakeformat.metadata.manifest_columns.columns import Positions
from lakeformat.metadata.manifest_list import ManifestMeta, read_manifest_list
from lakeformat.metadata.schema_file import read_schema
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.read.prune import Conjunction
from lakeformat.read.prune_entries import EntryPruner, SchemaReader
from lakeformat.schema import TableSchema

__all__ = ["BucketRows", "FilePlan", "plan_columns", "plan_files"]


@dataclass(frozen=True, slots=True)
class BucketRows:
    """The files of a plan by partition and bucket, those of a group in commit order."""

    rows: Positions
    """Positions in the plan, group after group, in the order their first file was committed."""
    starts: Positions
    """Where each group starts in ``rows``; the last ends with it."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The live files of a snapshot that may hold rows asked for, in commit order."""

    columns: ManifestColumns
    manifests: int
    """How many manifests the snapshot has."""
    manifests_read: int
    entries_read: int

    def buckets(self) -> BucketRows:
        """Group the files by partition and bucket."""
        columns = self.columns
        partition = columns.partition.to_arrow().dictionary_encode().indices.to_numpy()
        _, bucket = np.unique(columns.bucket.numbers, return_inverse=True)
        places = partition.astype(np.int64) * (int(bucket.max(initial=0)) + 1) + bucket
        by_place = np.argsort(places, kind="stable")
        changes = np.flatnonzero(np.diff(places[by_place])) + 1
        starts = np.concatenate(([0], changes)) if len(columns) else changes
        return _in_commit_order(by_place, starts)

    def entries(self) -> list[ManifestEntry]:
        """The files as objects."""
        return self.columns.entries()


def plan_files(handle: TableHandle, snapshot: Snapshot) -> list[ManifestEntry]:
    """The live files of a snapshot, in the order they were committed."""
    plan = plan_columns(handle, snapshot)
    _check_readable(plan.columns, _source(handle, snapshot))
    return plan.entries()


def plan_columns(
    handle: TableHandle,
    snapshot: Snapshot,
    *,
    conditions: Conjunction = (),
    buckets: Collection[int] | None = None,
) -> FilePlan:
    """The live files that may hold rows which meet all conditions, in those buckets."""
    require_readable(handle)
    pruner = EntryPruner(handle.schema, conditions, buckets, _schema_reader(handle))
    manifests = _manifests(handle, snapshot)
    picked = pruner.pick_manifests(manifests)
    names = [manifest.file_name for manifest in picked]
    read = read_manifests(handle.storage, handle.layout, names)
    # ADD and DELETE of a file are in one place, but need not have equal statistics.
    there = read.filter(pruner.by_place(read))
    rows = live_rows(there, _source(handle, snapshot))
    live = there if len(rows) == len(there) else there.take(rows)
    found = live.filter(pruner.by_statistics(live))
    return FilePlan(found, len(manifests), len(picked), len(read))


def _source(handle: TableHandle, snapshot: Snapshot) -> str:
    return f"snapshot {snapshot.id} of {handle.uri}"


def _manifests(handle: TableHandle, snapshot: Snapshot) -> list[ManifestMeta]:
    storage, layout = handle.storage, handle.layout
    return [
        *read_manifest_list(storage, layout, snapshot.base_manifest_list),
        *read_manifest_list(storage, layout, snapshot.delta_manifest_list),
    ]


def _schema_reader(handle: TableHandle) -> SchemaReader:
    @cache
    def read(schema_id: int) -> TableSchema:
        if schema_id == handle.schema.id:
            return handle.schema
        return read_schema(handle.storage, handle.layout, schema_id)

    return read


def _check_readable(columns: ManifestColumns, source: str) -> None:
    partial = columns.write_cols.present
    rows = np.arange(len(columns)) if partial is None else np.flatnonzero(partial)
    if len(rows):
        [name] = columns.file_name.take(rows[:1]).texts()
        raise UnsupportedError(
            f"{source} keeps only some columns in {name}; this version does not join files by "
            "row id"
        )


def _in_commit_order(by_place: Positions, starts: Positions) -> BucketRows:
    """Put groups in the order of their first rows."""
    order = np.argsort(by_place[starts])
    sizes = np.diff(np.append(starts, len(by_place)))[order]
    ends = np.cumsum(sizes)
    places = np.repeat(starts[order] - (ends - sizes), sizes) + np.arange(len(by_place))
    return BucketRows(by_place[places], ends - sizes)
