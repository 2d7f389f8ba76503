# SPDX-License-Identifier: Apache-2.0
"""Counts files and rows for the summary of a snapshot, with the keys of Iceberg's Java library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.metadata.manifest import DATA, EQUALITY_DELETES, POSITION_DELETES, PUFFIN

__all__ = [
    "FileCounts",
    "change_summary",
    "manifest_summary",
    "partition_count",
    "total_summary",
    "totals_in",
]

_TOTALS = {
    "total-data-files": "data_files",
    "total-records": "records",
    "total-files-size": "bytes",
    "total-delete-files": "delete_files",
    "total-position-deletes": "position_deletes",
    "total-equality-deletes": "equality_deletes",
}
_MOST_DIGITS = 19
_ADDED = {
    "added-data-files": "data_files",
    "added-records": "records",
    "added-files-size": "bytes",
    "added-delete-files": "delete_files",
    "added-position-delete-files": "position_delete_files",
    "added-equality-delete-files": "equality_delete_files",
    "added-dvs": "vectors",
    "added-position-deletes": "position_deletes",
    "added-equality-deletes": "equality_deletes",
}
_REMOVED = {
    "deleted-data-files": "data_files",
    "deleted-records": "records",
    "removed-files-size": "bytes",
    "removed-delete-files": "delete_files",
    "removed-position-delete-files": "position_delete_files",
    "removed-equality-delete-files": "equality_delete_files",
    "removed-dvs": "vectors",
    "removed-position-deletes": "position_deletes",
    "removed-equality-deletes": "equality_deletes",
}


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Counts of files, and of the rows and bytes in them."""

    data_files: int = 0
    records: int = 0
    """The number of rows in data files."""
    bytes: int = 0
    """The size of all files in bytes; of a Puffin file only the deletion vectors count."""
    delete_files: int = 0
    """The number of delete files, including deletion vectors."""
    position_deletes: int = 0
    equality_deletes: int = 0
    position_delete_files: int = 0
    equality_delete_files: int = 0
    vectors: int = 0

    @classmethod
    def of(cls, entries: Iterable[pa.Table]) -> FileCounts:
        """Return the counts of manifest entries; for the totals of a snapshot, pass only live
        entries.
        """
        found = cls()
        for some in entries:
            found = found.plus(cls._of(some))
        return found

    @classmethod
    def _of(cls, entries: pa.Table) -> FileCounts:
        content, records = entries.column("content"), entries.column("record_count")
        is_vector = pc.equal(entries.column("file_format"), PUFFIN)
        sizes = pc.if_else(
            is_vector, entries.column("content_size_in_bytes"), entries.column("file_size_in_bytes")
        )

        def rows(kind: int) -> pa.ChunkedArray:
            return records.filter(pc.equal(content, kind))

        data, positions, keys = map(rows, (DATA, POSITION_DELETES, EQUALITY_DELETES))
        vectors = _sum(is_vector)
        return cls(
            len(data),
            _sum(data),
            _sum(sizes),
            len(positions) + len(keys),
            _sum(positions),
            _sum(keys),
            len(positions) - vectors,
            len(keys),
            vectors,
        )

    def plus(self, other: FileCounts) -> FileCounts:
        """Return the sum of two counts."""
        return self._combined(other, 1)

    def minus(self, other: FileCounts) -> FileCounts:
        """Return the difference of two counts."""
        return self._combined(other, -1)

    def _combined(self, other: FileCounts, sign: int) -> FileCounts:
        names = self.__slots__
        return FileCounts(*[getattr(self, each) + sign * getattr(other, each) for each in names])


def change_summary(added: FileCounts, removed: FileCounts, partitions: int) -> dict[str, str]:
    """Return the counts of a change for the summary of its snapshot.

    As in Java, zeros are left out, except the number of partitions.
    """
    found = _present(_ADDED, added) | _present(_REMOVED, removed)
    return {**found, "changed-partition-count": str(partitions)}


def manifest_summary(before: pa.Table, after: pa.Table) -> dict[str, str]:
    """Return the numbers of manifests that a commit creates, keeps and replaces."""
    old, new = ({*each.column("manifest_path").to_pylist()} for each in (before, after))
    return {
        "manifests-created": str(len(new - old)),
        "manifests-kept": str(len(new & old)),
        "manifests-replaced": str(len(old - new)),
    }


def total_summary(totals: FileCounts) -> dict[str, str]:
    """Return the totals of a snapshot for its summary."""
    return {key: str(getattr(totals, name)) for key, name in _TOTALS.items()}


def totals_in(summary: Mapping[str, str]) -> FileCounts | None:
    """Return the totals in a summary; None if one of them is missing or not a number."""
    texts = {name: summary.get(key, "") for key, name in _TOTALS.items()}
    if not all(e.isascii() and e.isdecimal() and len(e) <= _MOST_DIGITS for e in texts.values()):
        return None
    return FileCounts(**{name: int(text) for name, text in texts.items()})


def partition_count(entries: Iterable[pa.Table]) -> int:
    """Return the number of different partitions; partitions of two specs count separately."""
    found: set[str] = set()
    for some in entries:
        spec_ids = some.column("spec_id").to_pylist()
        fields = [_plain(each) for each in some.column("partition").combine_chunks().flatten()]
        found.update(map(repr, zip(spec_ids, *fields, strict=True)))  # as text NaN equals NaN
    return len(found)


def _plain(values: pa.Array) -> list[Any]:
    """Return partition values as Python objects, with dates and times as numbers."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    plain: list[Any] = values.to_pylist()
    return plain


def _present(keys: Mapping[str, str], counts: FileCounts) -> dict[str, str]:
    return {key: str(count) for key, name in keys.items() if (count := getattr(counts, name))}


def _sum(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)
