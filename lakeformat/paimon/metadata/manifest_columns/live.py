# SPDX-License-Identifier: Apache-2.0
"""Finds the live files of a snapshot: each DELETE cancels the ADD of its file. All entries are
processed together, not one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    Mask,
    Positions,
    equal_bytes,
)
from lakeformat.paimon.metadata.manifest_columns.entries import ManifestColumns
from lakeformat.paimon.metadata.manifest_entry import ManifestEntry

__all__ = [
    "CancelledPairs",
    "added_twice",
    "cancel_pairs",
    "deleted_without_add",
    "live_rows",
    "meet",
]

Words = NDArray[np.uint64]

_WORD_BYTES = 8
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(32)


def live_rows(columns: ManifestColumns, source: str) -> Positions:
    """Return the positions of the ADD entries that no later DELETE cancels, in commit order.

    Raise CorruptTableError for a second ADD of a file, or for a DELETE without an ADD. The error
    names the table by ``source``.
    """
    kept = cancel_pairs(columns, source)
    stray = kept[columns.is_delete[kept]]
    if len(stray):
        [entry] = columns.entries(stray[:1])
        raise deleted_without_add(entry, source)
    return kept


def cancel_pairs(columns: ManifestColumns, source: str) -> Positions:
    """Return the positions of the entries that remain after each DELETE has cancelled its ADD.

    A DELETE without its ADD remains. Raise CorruptTableError if a file is added twice.
    """
    outcome = meet(columns)
    if len(outcome.added_again):
        [entry] = columns.entries(outcome.added_again[:1])
        raise added_twice(entry, source)
    return outcome.left


@dataclass(frozen=True, slots=True)
class CancelledPairs:
    """The entries that remain after each DELETE has cancelled its ADD."""

    left: Positions
    """The positions of the remaining entries in commit order; a DELETE without its ADD remains."""
    added_again: Positions
    """The positions of the ADDs of files that were already live, ascending."""


def meet(columns: ManifestColumns) -> CancelledPairs:
    """Cancel each DELETE and its ADD, and find the files that are added twice."""
    everything = np.arange(len(columns))
    # A file name is repeated only when a file moves to a higher level, so this test is usually
    # enough.
    if not columns.is_delete.any() and _all_differ(_mix(columns.file_name, 0)):
        return CancelledPairs(everything, everything[:0])
    history = _by_identity(columns)
    is_delete = columns.is_delete[history.rows]
    twice = history.goes_on & ~is_delete[:-1] & ~is_delete[1:]
    # In the history of one file, an ADD and the DELETE right after it cancel each other.
    ends = history.goes_on & ~is_delete[:-1] & is_delete[1:]
    cancelled = np.zeros(len(columns), np.bool_)
    cancelled[history.rows[:-1][ends]] = True
    cancelled[history.rows[1:][ends]] = True
    return CancelledPairs(np.flatnonzero(~cancelled), np.sort(history.rows[1:][twice]))


def added_twice(entry: ManifestEntry, source: str) -> CorruptTableError:
    """Return the CorruptTableError about two ADDs of one file without a DELETE between them."""
    return CorruptTableError(
        f"{source} adds {entry.file.file_name} of bucket {entry.bucket} twice; "
        "roll the table back to the snapshot before the commit that added it again"
    )


def deleted_without_add(entry: ManifestEntry, source: str) -> CorruptTableError:
    """Return the CorruptTableError about a DELETE of a file that no earlier entry has added."""
    return CorruptTableError(
        f"{source} deletes {entry.file.file_name} of bucket {entry.bucket}, "
        "which no earlier commit added; roll the table back to the snapshot before the commit that "
        "deletes it"
    )


@dataclass(frozen=True, slots=True)
class _Histories:
    """The positions of all entries, grouped by the identity of their file; in commit order within
    a group.
    """

    rows: Positions
    goes_on: Mask
    """For each entry except the last one: True if the next entry is about the same file."""


def _by_identity(columns: ManifestColumns) -> _Histories:
    """Group entries by the identity of their file.

    Entries are sorted by a hash of most parts of the identity; then all parts of neighbours are
    compared.
    """
    hashes = _hash(columns)
    rows = np.argsort(hashes, kind="stable")
    alike = np.flatnonzero(hashes[rows[1:]] == hashes[rows[:-1]])
    goes_on = np.zeros(max(len(rows) - 1, 0), np.bool_)
    equal = _are_equal(columns, rows[alike], rows[alike + 1])
    if not equal.all():
        return _by_exact_identity(columns)
    goes_on[alike] = True
    return _Histories(rows, goes_on)


def _by_exact_identity(columns: ManifestColumns) -> _Histories:
    """Do the same as ``_by_identity`` without hashes, in case two hashes collide."""
    found: dict[object, list[int]] = {}
    for row, entry in enumerate(columns.entries()):
        found.setdefault(entry.identity, []).append(row)
    rows = np.array([row for group in found.values() for row in group], np.int64)
    goes_on = np.ones(len(rows), np.bool_)
    goes_on[np.cumsum([len(group) for group in found.values()]) - 1] = False
    return _Histories(rows, goes_on[:-1])


def _hash(columns: ManifestColumns) -> Words:
    hashes = _mix(columns.file_name, 0)
    hashes = _mix(columns.partition, hashes)
    for numbers in (columns.bucket.numbers, columns.level.numbers):
        hashes = _step(hashes, numbers.view(np.uint64))
    return hashes


def _mix(column: BytesColumn, hashes: Words | int) -> Words:
    """Return ``hashes`` combined with the values of a column, eight bytes at a time."""
    mixed = _step(np.asarray(hashes, np.uint64), column.sizes.view(np.uint64))
    every = np.arange(len(column))
    for done in range(0, int(column.sizes.max(initial=0)), _WORD_BYTES):
        rows = every if (column.sizes > done).all() else np.flatnonzero(column.sizes > done)
        mixed[rows] = _step(mixed[rows], column.take(rows).words(done))
    return mixed


def _step(hashes: Words, words: Words) -> Words:
    mixed: Words = (hashes ^ words) * _FACTOR
    return mixed ^ (mixed >> _FOLD)


def _all_differ(hashes: Words) -> bool:
    ordered = np.sort(hashes)
    return not (ordered[1:] == ordered[:-1]).any()


def _are_equal(columns: ManifestColumns, first: Positions, second: Positions) -> Mask:
    """Return a mask of the pairs of entries whose files have the same
    ``ManifestEntry.identity``.
    """
    equal: Mask = columns.bucket.numbers[first] == columns.bucket.numbers[second]
    equal &= columns.level.numbers[first] == columns.level.numbers[second]
    for column in (columns.partition, columns.file_name):
        equal &= equal_bytes(column.take(first), column.take(second))
    for rare in (columns.extra_files, columns.embedded_file_index, columns.external_path):
        if rare.present is None or rare.present.any():
            pairs = zip(rare.take(first).values(), rare.take(second).values(), strict=True)
            equal &= np.fromiter((one == other for one, other in pairs), np.bool_, len(first))
    return equal
