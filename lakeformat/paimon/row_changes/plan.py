# SPDX-License-Identifier: Apache-2.0
"""Finds the files of a snapshot that may have rows for a DELETE or UPDATE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.paimon.compact.supported import require_whole_rows
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_fields, partition_values
from lakeformat.paimon.read.deletions import find_vectors
from lakeformat.paimon.read.plan import plan_columns, plan_files
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.types.arrow_types import to_arrow_schema
from lakeformat.types.values import values_to_arrow

__all__ = ["ChangeUnit", "plan_units"]

_Place = tuple[bytes, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeUnit:
    """The files to search in one bucket of an append table: those that may have rows to change."""

    snapshot: Snapshot
    files: tuple[ManifestEntry, ...]
    where: PredicateFilter | None
    """The condition; None if every row of the files is to be changed."""
    vectors: tuple[IndexManifestEntry, ...]
    """The index files with deletion vectors of the bucket."""
    live: frozenset[str]
    """The names of all live files of the bucket; empty if the table has no deletion vectors.

    Deletion vectors of files that are not live are obsolete.
    """

    @property
    def partition(self) -> bytes:
        """The partition as a framed binary row."""
        return self.files[0].partition

    @property
    def bucket(self) -> int:
        return self.files[0].bucket

    @property
    def bytes(self) -> int:
        """The sum of the file sizes in bytes."""
        return sum(entry.file.file_size for entry in self.files)


def plan_units(
    handle: TableHandle, snapshot: Snapshot, where: PredicateFilter | None
) -> list[ChangeUnit]:
    """Return the buckets to search, each with the files that may have matching rows.

    No data file is read.
    """
    conditions = () if where is None else where.conditions()
    by_place: dict[_Place, list[ManifestEntry]] = {}
    for entry in plan_files(handle, snapshot, conditions=conditions):
        by_place.setdefault((entry.partition, entry.bucket), []).append(entry)
    vectors = find_vectors(handle, snapshot)
    live = _names(handle, snapshot) if vectors else {}
    decided = where is not None and where.columns <= set(handle.schema.partition_keys)
    units = []
    for place, files in by_place.items():
        require_whole_rows(handle, files)
        if decided and where is not None and not _meets(handle.schema, where, place[0]):
            continue
        units.append(
            ChangeUnit(
                snapshot=snapshot,
                files=tuple(files),
                where=None if decided else where,
                vectors=vectors.get(place, ()),
                live=live.get(place, frozenset()),
            )
        )
    return units


def _names(handle: TableHandle, snapshot: Snapshot) -> Mapping[_Place, frozenset[str]]:
    found: dict[_Place, set[str]] = {}
    columns = plan_columns(handle, snapshot).columns
    for entry in columns.entries():
        found.setdefault((entry.partition, entry.bucket), set()).add(entry.file.file_name)
    return {place: frozenset(there) for place, there in found.items()}


def _meets(schema: TableSchema, where: PredicateFilter, partition: bytes) -> bool:
    """Return True if a partition meets ``where``, which uses partition columns only."""
    fields = partition_fields(schema)
    values = partition_values(schema, partition)
    arrays = [values_to_arrow([v], f.type) for f, v in zip(fields, values, strict=True)]
    types = to_arrow_schema(fields).types
    # A batch without columns has no row: the last column gives an unpartitioned table one row, too.
    row = pa.RecordBatch.from_arrays(
        [*(array.cast(kind) for array, kind in zip(arrays, types, strict=True)), pa.nulls(1)],
        names=[*(field.name for field in fields), ""],
    )
    return where.mask(row)[0].as_py() is True
