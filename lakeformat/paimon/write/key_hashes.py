# SPDX-License-Identifier: Apache-2.0
"""Finds the bucket of each key in one partition by the hash of the key.

Keys with equal hashes share a bucket, which is harmless. A key is never removed, even if its row is
deleted. Each key takes four bytes for the hash and two for the bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.bucketing import Buckets

__all__ = ["MOST_BUCKETS", "Hashes", "KeyHashes", "Room", "fill"]

Hashes: TypeAlias = npt.NDArray[np.int32]

MOST_BUCKETS = 32_767
"""The largest number of dynamic buckets of a partition."""
_BUCKET_BITS = 15


@dataclass(frozen=True, slots=True)
class Room:
    """The number of keys that fills a bucket, and the largest number of buckets in a partition."""

    keys: int
    buckets: int | None
    """The largest number of buckets in a partition; None for ``MOST_BUCKETS``."""
    random_fraction: Callable[[], float]


def fill(counts: dict[int, int], new: int, room: Room) -> Buckets:
    """Return a bucket for each of ``new`` keys.

    ``counts``, the number of keys of each bucket, is updated. Keys fill buckets that are not full,
    then new buckets. If ``room.buckets`` is a number, keys that do not fit into this number of
    buckets get random buckets. If it is None, raise InvalidRequestError for keys that do not fit
    into ``MOST_BUCKETS`` buckets.
    """
    chosen: list[int] = []
    taken: list[int] = []
    left = new
    for bucket in sorted(counts):
        count = min(room.keys - counts[bucket], left)
        if count > 0:
            chosen.append(bucket)
            taken.append(count)
            counts[bucket] += count
            left -= count
    for bucket in range(room.buckets or MOST_BUCKETS):
        if left and bucket not in counts:
            counts[bucket] = min(room.keys, left)
            chosen.append(bucket)
            taken.append(counts[bucket])
            left -= counts[bucket]
    return np.concatenate([np.repeat(np.array(chosen, np.int32), taken), _any(counts, left, room)])


def _any(counts: dict[int, int], keys: int, room: Room) -> Buckets:
    if keys and room.buckets is None:
        raise InvalidRequestError(
            f"all {MOST_BUCKETS} buckets of a partition are full with {room.keys} keys each: "
            "increase 'dynamic-bucket.target-row-num'"
        )
    if not keys:
        return np.empty(0, np.int32)
    chance = np.random.default_rng(int(room.random_fraction() * 2**53))
    found = chance.choice(np.array(sorted(counts), np.int32), keys)
    for bucket, more in zip(*np.unique(found, return_counts=True), strict=True):
        counts[int(bucket)] += int(more)
    return found


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Hashes of keys in ascending order, each with its bucket."""

    hashes: Hashes
    buckets: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, wanted: Hashes, found: Buckets) -> None:
        """Write the bucket of each known hash in ``wanted`` to the same position of ``found``.

        ``wanted`` is sorted. The positions of unknown hashes are not changed.
        """
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        here = self.hashes[at] == wanted
        found[here] = self.buckets[at[here]]


def _in_order(hashes: Sequence[Hashes], buckets: Sequence[npt.NDArray[np.integer]]) -> _Sorted:
    # Sorting is several times faster if hash and bucket are one integer.
    packed = np.concatenate(hashes).astype(np.int64) << _BUCKET_BITS
    packed |= np.concatenate(buckets)
    packed.sort()
    return _Sorted(
        (packed >> _BUCKET_BITS).astype(np.int32), (packed & MOST_BUCKETS).astype(np.int16)
    )


class KeyHashes:
    """The hashes of the known and the new keys of one partition, each with its bucket."""

    def __init__(self, known: Mapping[int, Hashes], room: Room) -> None:
        """Start with the hashes ``known`` of each bucket; no hash is in two buckets."""
        self._room = room
        self._counts = {bucket: len(hashes) for bucket, hashes in known.items()}
        self._changed: set[int] = set()
        self._parts: list[_Sorted] = []
        for bucket, hashes in known.items():
            self._add(_in_order([hashes], [np.full(len(hashes), bucket, np.int16)]))

    def assign(self, hashes: Hashes) -> Buckets:
        """Return the bucket of each key, given its hash; buckets are filled in the keys' order."""
        packed = (hashes.astype(np.int64) << 32) | np.arange(len(hashes))
        packed.sort()
        in_order, rows = (packed >> 32).astype(np.int32), packed & 0xFFFFFFFF
        starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))
        different = in_order[starts]
        found = np.full(len(different), -1, np.int32)
        for part in self._parts:
            part.find(different, found)
        if (new := np.flatnonzero(found < 0)).size:
            order = new[np.argsort(rows[starts[new]])]
            found[order] = fill(self._counts, len(new), self._room)
            self._changed.update(np.flatnonzero(np.bincount(found[new])).tolist())
            self._add(_Sorted(different[new], found[new].astype(np.int16)))
        buckets = np.empty(len(hashes), np.int32)
        buckets[rows] = np.repeat(found, np.diff(np.append(starts, len(hashes))))
        return buckets

    def changed(self) -> dict[int, Hashes]:
        """Return, for each bucket that got new hashes, all of its hashes."""
        if not self._changed:
            return {}
        there = np.array(sorted(self._changed), np.int16)
        hashes = np.concatenate([part.hashes for part in self._parts])
        buckets = np.concatenate([part.buckets for part in self._parts])
        rows = np.flatnonzero(np.isin(buckets, there))
        rows = rows[np.argsort(buckets[rows], kind="stable")]
        ends = np.searchsorted(buckets[rows], there, side="right")
        parts = np.split(hashes[rows], ends[:-1])
        return {int(bucket): part for bucket, part in zip(there, parts, strict=True)}

    def _add(self, part: _Sorted) -> None:
        """Add a part with sorted hashes.

        Small parts are merged, so that each hash is sorted only a few times.
        """
        while self._parts and len(self._parts[-1]) <= 2 * len(part):
            last = self._parts.pop()
            part = _in_order([last.hashes, part.hashes], [last.buckets, part.buckets])
        if len(part):
            self._parts.append(part)
