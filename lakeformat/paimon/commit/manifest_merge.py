# SPDX-License-Identifier: Apache-2.0
"""Merges the manifests of a table during a commit, so that a scan reads fewer of them.

``pick_manifests`` chooses from the manifest list alone, ``merge_manifests`` writes. The live files
of the table do not change. A minor merge joins small neighbours. A full merge also drops all
entries of deleted files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import (
    ManifestColumns,
    cancel_pairs,
    encode_columns,
    read_manifests,
    write_content,
)
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, summarise_columns
from lakeformat.paimon.metadata.simple_stats import SimpleStats, may_contain_partition
from lakeformat.paimon.options import TableOptions
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted
from lakeformat.types.types import DataType

__all__ = [
    "ManifestMerge",
    "MergeLimits",
    "merge_manifests",
    "must_change",
    "partition_types",
    "pick_deletions",
    "pick_manifests",
    "runs_of",
    "with_deletions",
]

_CHECKED_ROWS = 1000
"""The number of entries in a new manifest is a multiple of this number, except in the last one."""


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """The limits, from table options, at which manifests are merged."""

    target_size_bytes: int
    full_compaction_size_bytes: int
    min_count: int

    @classmethod
    def of(cls, options: TableOptions) -> MergeLimits:
        return cls(
            options.manifest_target_size_bytes,
            options.manifest_full_compaction_size_bytes,
            options.manifest_merge_min_count,
        )


@dataclass(frozen=True, slots=True)
class ManifestMerge:
    """The manifests to merge, as ranges (first index, index after the last) of a manifest list."""

    runs: tuple[tuple[int, int], ...]
    is_full: bool
    reason: str


def pick_manifests(manifests: Sequence[ManifestMeta], limits: MergeLimits) -> ManifestMerge | None:
    """Return the merge that the limits require, or None."""
    changing = [must_change(manifest, limits) for manifest in manifests]
    total = sum(m.file_size for m, must in zip(manifests, changing, strict=True) if must)
    if sum(changing) > 1 and total >= limits.full_compaction_size_bytes:
        reason = (
            f"{sum(changing)} manifests that are small or have entries of deleted files take "
            f"{size(total)}"
        )
        return ManifestMerge(tuple(runs_of(changing)), is_full=True, reason=reason)
    runs = tuple(_small_neighbours(manifests, limits))
    if not runs:
        return None
    count = sum(end - start for start, end in runs)
    return ManifestMerge(runs, is_full=False, reason=f"{count} adjacent manifests are small")


def pick_deletions(manifests: Sequence[ManifestMeta]) -> ManifestMerge | None:
    """Return the merge that drops all DELETE entries; None if no manifest has any."""
    deletes = [manifest.num_deleted_files > 0 for manifest in manifests]
    reason = with_deletions(sum(deletes), len(manifests))
    runs = tuple(runs_of(deletes))
    return ManifestMerge(runs, is_full=True, reason=reason) if runs else None


def with_deletions(count: int, manifests: int) -> str:
    """Return the reason for a merge: ``count`` of ``manifests`` manifests have DELETE entries."""
    have = "has" if count == 1 else "have"
    return f"{count} of {counted(manifests, 'manifest')} {have} entries of deleted files"


def must_change(manifest: ManifestMeta, limits: MergeLimits) -> bool:
    """Return True for a manifest that has DELETE entries or is smaller than the target size."""
    return manifest.num_deleted_files > 0 or manifest.file_size < limits.target_size_bytes


def runs_of(chosen: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the runs of True in ``chosen`` as (first index, index after the last)."""
    start = None
    for position, is_chosen in enumerate([*chosen, False]):
        if is_chosen and start is None:
            start = position
        elif not is_chosen and start is not None:
            yield start, position
            start = None


def _small_neighbours(
    manifests: Sequence[ManifestMeta], limits: MergeLimits
) -> Iterator[tuple[int, int]]:
    """Yield ranges of two or more neighbours that together reach the target size.

    The remaining manifests at the end do not reach the target size. They are also yielded if there
    are at least ``min_count`` of them.
    """
    start, size = 0, 0
    for position, manifest in enumerate(manifests):
        size += manifest.file_size
        if size >= limits.target_size_bytes:
            if position > start:
                yield start, position + 1
            start, size = position + 1, 0
    if len(manifests) - start >= max(limits.min_count, 2):
        yield start, len(manifests)


def merge_manifests(
    handle: TableHandle,
    manifests: Sequence[ManifestMeta],
    merge: ManifestMerge,
    new_name: Callable[[], str],
) -> list[ManifestMeta]:
    """Write the merged manifests; return the whole list, with the new manifests in place of the
    old.

    ``new_name`` returns the name of a manifest. It is called before each file is written, so that
    the caller can delete all new files after a failure.
    """
    types = partition_types(handle)
    writer = _MergedManifestWriter(handle, types, new_name)
    if merge.is_full:
        return _merge_fully(handle, manifests, merge, writer)
    merged: list[ManifestMeta] = []
    done = 0
    for start, end in merge.runs:
        run = manifests[start:end]
        columns = _read(handle, run)
        kept = cancel_pairs(columns, handle.uri)
        merged += manifests[done:start]
        merged += writer.write(columns.take(kept), _bytes_per_entry(run))
        done = end
    return [*merged, *manifests[done:]]


def partition_types(handle: TableHandle) -> tuple[DataType, ...]:
    """Return the types of the partition columns, in the order of the partition keys."""
    by_name = {field.name: field.type for field in handle.schema.fields}
    return tuple(by_name[key] for key in handle.schema.partition_keys)


def _merge_fully(
    handle: TableHandle,
    manifests: Sequence[ManifestMeta],
    merge: ManifestMerge,
    writer: _MergedManifestWriter,
) -> list[ManifestMeta]:
    """Rewrite the chosen manifests, and return the whole manifest list.

    If a chosen manifest deletes a file of another manifest, the other manifest is rewritten, too.
    """
    rewritten = {position for start, end in merge.runs for position in range(start, end)}
    parts = {position: _read(handle, [manifests[position]]) for position in sorted(rewritten)}
    deleted = _deleted_partitions(list(parts.values()))
    for position, manifest in enumerate(manifests):
        if position not in parts and _may_hold(manifest.partition_stats, deleted, writer.types):
            parts[position] = _read(handle, [manifest])
    order = sorted(parts)
    columns = ManifestColumns.concat([parts[position] for position in order])
    kept = np.zeros(len(columns), np.bool_)
    kept[cancel_pairs(columns, handle.uri)] = True
    ends = np.cumsum([len(parts[position]) for position in order])
    touched = {
        position: kept[end - len(parts[position]) : end]
        for position, end in zip(order, ends.tolist(), strict=True)
    }
    rewritten |= {position for position, rows in touched.items() if not rows.all()}
    return list(_replaced(manifests, parts, touched, rewritten, writer))


def _replaced(
    manifests: Sequence[ManifestMeta],
    parts: dict[int, ManifestColumns],
    kept: dict[int, NDArray[np.bool_]],
    rewritten: set[int],
    writer: _MergedManifestWriter,
) -> Iterator[ManifestMeta]:
    """Yield the whole list, with new manifests in the place of each run of rewritten manifests.

    ``parts`` are the entries and ``kept`` the masks of live entries, by the index of the manifest.
    """
    done = 0
    for start, end in runs_of([position in rewritten for position in range(len(manifests))]):
        yield from manifests[done:start]
        run = range(start, end)
        columns = [parts[position].filter(kept[position]) for position in run]
        size = _bytes_per_entry([manifests[position] for position in run])
        yield from writer.write(ManifestColumns.concat(columns), size)
        done = end
    yield from manifests[done:]


def _deleted_partitions(parts: Sequence[ManifestColumns]) -> pa.Array:
    found = [part.partition.take(np.flatnonzero(part.is_delete)).to_arrow() for part in parts]
    return pa.concat_arrays(found).unique()


def _may_hold(stats: SimpleStats, partitions: pa.Array, types: Sequence[DataType]) -> bool:
    return any(may_contain_partition(stats, row, types) for row in partitions.to_pylist())


def _read(handle: TableHandle, manifests: Sequence[ManifestMeta]) -> ManifestColumns:
    return read_manifests(handle.storage, handle.layout, manifests)


def _bytes_per_entry(manifests: Sequence[ManifestMeta]) -> float:
    entries = sum(each.num_added_files + each.num_deleted_files for each in manifests)
    return sum(each.file_size for each in manifests) / max(entries, 1)


@dataclass(frozen=True, slots=True)
class _MergedManifestWriter:
    handle: TableHandle
    types: tuple[DataType, ...]
    new_name: Callable[[], str]

    def write(self, columns: ManifestColumns, bytes_per_entry: float) -> Iterator[ManifestMeta]:
        """Write the entries to as many manifests as the target size requires; yield their
        descriptions.
        """
        handle, first = self.handle, 0
        rows = self._rows(bytes_per_entry)
        while first < len(columns):
            part = columns.take(slice(first, first + rows))
            content = encode_columns(part, handle.options)
            first += len(part)
            rows = self._rows(len(content) / len(part))
            if first < len(columns) and len(content) < self._target:
                # Every commit would merge a manifest below the target size again.
                first -= len(part)
                rows = max(rows, len(part) + _CHECKED_ROWS)
                continue
            name = self.new_name()
            size = write_content(handle.storage, handle.layout, name, content)
            yield summarise_columns(name, size, part, self.types)

    @property
    def _target(self) -> int:
        return self.handle.options.manifest_target_size_bytes

    def _rows(self, bytes_per_entry: float) -> int:
        """Return a number of entries that together reach the target size."""
        return (int(self._target / bytes_per_entry) // _CHECKED_ROWS + 1) * _CHECKED_ROWS
