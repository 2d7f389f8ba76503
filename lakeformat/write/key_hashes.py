"""Which bucket of one partition each key is in, told by the hash of the key.

Keys with one hash share a bucket, which is harmless. A key is never forgotten, also not when its
row is deleted. Four bytes of hash and two of bucket are held per key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lakeformat.bucketing import Buckets
from lakeformat.errors import InvalidRequestError
from lakeformat.merge.groups import Positions

__all__ = ["MOST_BUCKETS", "Hashes", "KeyHashes", "Room", "fill"]

Hashes: TypeAlias = npt.NDArray[np.int32]

MOST_BUCKETS = 32_767
"""So many buckets of a partition have a number."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many keys there are for a bucket, and how many buckets for a partition."""

    keys: int
    buckets: int | None
    """None for as many as there are numbers."""
    random_fraction: Callable[[], float]


def fill(counts: dict[int, int], new: int, room: Room) -> Buckets:
    """The buckets of so many new keys, in the order they came in; ``counts`` is brought up to date.

    They go to the first bucket that is not full, then to new ones, and once there may be no more
    of those to any bucket by chance.
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
            f"all {MOST_BUCKETS} buckets of a partition are full with {room.keys} keys each: raise "
            "'dynamic-bucket.target-row-num'"
        )
    if not keys:
        return np.empty(0, np.int32)
    chance = np.random.default_rng(int(room.random_fraction() * 2**53))
    found = chance.choice(np.array(sorted(counts), np.int32), keys)
    for bucket, more in zip(*np.unique(found, return_counts=True), strict=True):
        counts[int(bucket)] += int(more)
    return found


@dataclass(slots=True)
class _Sorted:
    """Hashes in order, each with its bucket."""

    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.int32))
    buckets: npt.NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))

    def find(self, wanted: Hashes, found: Buckets) -> None:
        """Put down the buckets of those that are here; ``wanted`` are in order."""
        if not len(self.hashes):
            return
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        here = self.hashes[at] == wanted
        found[here] = self.buckets[at[here]]

    def merged(self, hashes: Hashes, buckets: Buckets) -> _Sorted:
        """The same with others among them."""
        everything = np.concatenate([self.hashes, hashes])
        order = np.argsort(everything, kind="stable")
        of = np.concatenate([self.buckets, buckets.astype(np.int16)])
        return _Sorted(everything[order], of[order])


class KeyHashes:
    """The keys of one partition: those that are known, and those that come in."""

    def __init__(self, known: Mapping[int, Hashes], room: Room) -> None:
        """``known``: the hashes of each bucket, each hash once."""
        self._room = room
        self._counts = {bucket: len(hashes) for bucket, hashes in known.items()}
        self._new = _Sorted()
        self._known = _Sorted()
        if known:
            buckets = np.repeat(
                np.array([*known], np.int32), [len(each) for each in known.values()]
            )
            self._known = _Sorted().merged(np.concatenate([*known.values()]), buckets)

    def assign(self, hashes: Hashes) -> Buckets:
        """The bucket of each key; keys that are not known yet get one in the order they came in."""
        # Hash and row in one number are sorted several times as fast as rows by their hash.
        packed = (hashes.astype(np.int64) << 32) | np.arange(len(hashes))
        packed.sort()
        in_order, rows = (packed >> 32).astype(np.int32), packed & 0xFFFFFFFF
        starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))
        different = in_order[starts]
        found = np.full(len(different), -1, np.int32)
        self._known.find(different, found)
        self._new.find(different, found)
        if (new := np.flatnonzero(found < 0)).size:
            self._take_in(different, found, new, rows[starts[new]])
        buckets = np.empty(len(hashes), np.int32)
        buckets[rows] = np.repeat(found, np.diff(np.append(starts, len(hashes))))
        return buckets

    def changed(self) -> dict[int, Hashes]:
        """All hashes of each bucket that has got new ones."""
        there = np.unique(self._new.buckets)
        hashes = np.concatenate([self._known.hashes, self._new.hashes])
        buckets = np.concatenate([self._known.buckets, self._new.buckets])
        rows = np.flatnonzero(np.isin(buckets, there))
        rows = rows[np.argsort(buckets[rows], kind="stable")]
        ends = np.searchsorted(buckets[rows], there, side="right")
        parts = np.split(hashes[rows], ends[:-1]) if len(there) else []
        return {int(bucket): part for bucket, part in zip(there, parts, strict=True)}

    def _take_in(self, hashes: Hashes, found: Buckets, new: Positions, came_at: Positions) -> None:
        order = new[np.argsort(came_at)]
        found[order] = fill(self._counts, len(new), self._room)
        self._new = self._new.merged(hashes[new], found[new])
