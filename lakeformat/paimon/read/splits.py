# SPDX-License-Identifier: Apache-2.0
"""Splits: groups of files that can be read independently, anywhere and in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakeformat.paimon.merge.sections import key_sections
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.buckets import has_unique_rows
from lakeformat.paimon.read.row_ranges import joins_columns, row_ranges
from lakeformat.paimon.schema import TableSchema

__all__ = ["Split", "bucket_splits", "file_sections"]


@dataclass(frozen=True, slots=True)
class Split:
    """Files that are read together, of one bucket or of one partition with postponed rows.

    Splits can be pickled.
    """

    snapshot_id: int
    files: tuple[ManifestEntry, ...]
    raw_convertible: bool
    """True if the files can be read directly, without a merge or a join."""
    vectors: tuple[IndexManifestEntry, ...] = ()
    """The index files that may have deletion vectors of ``files``."""

    @property
    def partition(self) -> bytes:
        """The partition as a framed binary row."""
        return self.files[0].partition

    @property
    def bucket(self) -> int:
        return self.files[0].bucket

    @property
    def size_bytes(self) -> int:
        """The sum of the file sizes in bytes."""
        return sum(entry.file.file_size for entry in self.files)


def bucket_splits(
    schema: TableSchema,
    snapshot_id: int,
    files: Sequence[ManifestEntry],
    vectors: tuple[IndexManifestEntry, ...] = (),
) -> list[Split]:
    """Return the splits of one bucket, given its visible files and its deletion vectors.

    Files whose rows must be merged or joined are in one split.
    """
    splits = _splits(schema, snapshot_id, files)
    if not vectors:
        return splits
    found = _positions(vectors)
    return [replace(split, vectors=_vectors_of(split, vectors, found)) for split in splits]


def _positions(vectors: Sequence[IndexManifestEntry]) -> dict[str | None, list[int]]:
    """Return, for each data file, the positions in ``vectors`` of the index files that name it.

    If an index file does not name all its data files, it is also listed under None.
    """
    found: dict[str | None, list[int]] = {}
    for position, entry in enumerate(vectors):
        ranges = entry.ranges or ()
        if len(ranges) != entry.row_count:
            found.setdefault(None, []).append(position)
        for each in ranges:
            found.setdefault(each.data_file_name, []).append(position)
    return found


def _vectors_of(
    split: Split,
    vectors: Sequence[IndexManifestEntry],
    positions: Mapping[str | None, Sequence[int]],
) -> tuple[IndexManifestEntry, ...]:
    names = (None, *(entry.file.file_name for entry in split.files))
    chosen = {position for name in names for position in positions.get(name, ())}
    return tuple(vectors[position] for position in sorted(chosen))


def _splits(schema: TableSchema, snapshot_id: int, files: Sequence[ManifestEntry]) -> list[Split]:
    if joins_columns(schema):
        return [
            Split(
                snapshot_id,
                tuple(entry for group in pack for entry in group),
                raw_convertible=all(len(group) == 1 for group in pack),
            )
            for pack in _packs(schema, row_ranges(files))
        ]
    if not schema.primary_keys:
        return [
            Split(snapshot_id, tuple(entry for [entry] in pack), raw_convertible=True)
            for pack in _packs(schema, [(entry,) for entry in _in_bucket_order(schema, files)])
        ]
    if _is_merged(schema, files):
        units: list[tuple[ManifestEntry, ...]] = [(entry,) for entry in files]
        may_be_raw = len(files)
    else:
        units = [
            tuple(e for run in section for e in run) for section in file_sections(schema, files)
        ]
        may_be_raw = 1
    splits = []
    for pack in _packs(schema, units):
        entries = tuple(entry for unit in pack for entry in unit)
        is_raw = len(entries) <= may_be_raw and all(map(_has_no_retracts, entries))
        splits.append(Split(snapshot_id, entries, is_raw))
    return splits


def file_sections(
    schema: TableSchema, files: Sequence[ManifestEntry]
) -> list[list[list[ManifestEntry]]]:
    """Group files into sections with separate key ranges, each divided into runs, oldest first."""
    key_types = [field.type for field in schema.key_fields]
    sections = key_sections([entry.file for entry in files], key_types)
    return [[[files[i] for i in run] for run in section] for section in sections]


def _has_no_retracts(entry: ManifestEntry) -> bool:
    return entry.file.delete_row_count == 0


def _is_merged(schema: TableSchema, files: Sequence[ManifestEntry]) -> bool:
    """Return True if each key is in at most one file, and no file is known to have retracts.

    Then the rows need no merge.
    """
    levels = {entry.file.level for entry in files}
    if 0 in levels or any(entry.file.delete_row_count for entry in files):
        return False
    return len(levels) == 1 or has_unique_rows(schema)


def _in_bucket_order(
    schema: TableSchema, files: Sequence[ManifestEntry]
) -> Sequence[ManifestEntry]:
    """Return the files in the order in which their rows were written to the bucket.

    Without a fixed number of buckets, return the files unchanged, in commit order.
    """
    if schema.table_options.bucket < 0:
        return files
    return sorted(files, key=lambda entry: entry.file.min_sequence_number)


def _packs(
    schema: TableSchema, units: Sequence[tuple[ManifestEntry, ...]]
) -> Iterator[list[tuple[ManifestEntry, ...]]]:
    """Yield packs of consecutive units: the files of one pack become one split.

    The files of a unit are never separated. A pack has at most ``source.split.target-size`` bytes;
    only a single unit may be larger. A unit with fewer bytes than ``source.split.open-file-cost``
    counts as if it had that many.
    """
    options = schema.table_options
    capacity = options.source_split_target_size_bytes
    pack: list[tuple[ManifestEntry, ...]] = []
    taken = 0
    for unit in units:
        size = sum(entry.file.file_size for entry in unit)
        weight = max(size, options.source_split_open_file_cost_bytes)
        if pack and taken + weight > capacity:
            yield pack
            pack, taken = [], 0
        pack.append(unit)
        taken += weight
    if pack:
        yield pack
