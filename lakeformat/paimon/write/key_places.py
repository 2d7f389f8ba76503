# SPDX-License-Identifier: Apache-2.0
"""The places of keys in one write, for tables whose keys may move between partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakeformat.paimon.bucketing import Buckets
from lakeformat.paimon.write.assign import PartitionNumbers, Place, Places, rows_by_place
from lakeformat.paimon.write.dynamic_buckets import PlaceNumbers
from lakeformat.paimon.write.key_hashes import Room, fill
from lakeformat.rows.groups import Positions

__all__ = ["NOWHERE", "FindKeys", "FoundKeys", "KeyPlaces"]

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class DeletedKeys:
    """Deleted keys whose DELETE row is still in the files of a partition.

    A new row of the key in this partition must get the bucket of the DELETE row. Otherwise the two
    rows are compacted at different times, and the changelog can have them in the wrong order.
    """

    keys: Positions
    """The positions of these keys among all keys that were looked up."""
    partitions: Positions
    """For each of these keys, the position of the partition in ``FoundKeys.partitions``."""
    buckets: Buckets


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """The partition and bucket in which the table has each of the keys that were looked up."""

    partitions: list[bytes]
    """The partitions of the table that have files, as framed binary rows."""
    partition_of: Positions
    """For each key, the position of its partition in ``partitions``; ``NOWHERE`` for a new key."""
    bucket_of: Buckets
    counts: Mapping[Place, int]
    """The number of all keys in each bucket of the table."""
    deleted: DeletedKeys


FindKeys: TypeAlias = Callable[[pa.Array], FoundKeys]
"""A function that looks up distinct keys, given as framed binary rows, in the table."""


@dataclass(slots=True)
class KeyPlaces:
    """The partition and the place of each key, by number of the key, while rows are written.

    A place is a bucket of a partition.
    """

    numbers: PartitionNumbers
    room: Room
    partition_of: Positions
    """The partition number of each key; ``NOWHERE`` for a new key."""
    place_of: Places
    _left: LeftPlaces
    _places: PlaceNumbers = field(default_factory=PlaceNumbers)
    _counts: dict[int, dict[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: PartitionNumbers, room: Room, found: FoundKeys) -> KeyPlaces:
        """Return the places of keys before the write, as found in the table."""
        own = np.array([numbers.number(row, 0) for row in found.partitions], np.int64)
        known = np.flatnonzero(found.partition_of != NOWHERE)
        partition_of = np.full(len(found.partition_of), NOWHERE, np.int64)
        partition_of[known] = own[found.partition_of[known]]
        self = cls(
            numbers,
            room,
            partition_of,
            np.full(len(partition_of), NOWHERE, np.int64),
            LeftPlaces(len(partition_of)),
        )
        for place, count in found.counts.items():
            buckets = self._counts.setdefault(numbers.number(place.partition, 0), {})
            buckets[place.bucket] = count
        for partition, positions in rows_by_place(partition_of[known]) if len(known) else ():
            keys = known[positions]
            self.place_of[keys] = self._places.of(partition, found.bucket_of[keys])
        deleted = found.deleted
        left = own[deleted.partitions]
        at = np.empty(len(left), np.int64)
        for partition, positions in rows_by_place(left) if len(left) else ():
            at[positions] = self._places.of(partition, deleted.buckets[positions])
        self._left.add(deleted.keys, left, at)
        return self

    def come(self, keys: Positions, partitions: Positions, *, repeats: bool) -> Places:
        """Return the place number of each key in the partition to which it is written.

        A key that was there before gets its old bucket again. The buckets for new keys are filled
        in the order of ``keys``. ``repeats``: ``keys`` may have a key more than once.
        """
        places = self._left.find(keys, partitions)
        returns = self.partition_of[keys] == partitions
        places[returns] = self.place_of[keys[returns]]
        self._count(places[places != NOWHERE], 1)
        new = np.flatnonzero(places == NOWHERE)
        if not repeats:
            places[new] = self._new(partitions[new])
            return places
        pairs = _pairs(keys[new], partitions[new])
        _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
        firsts = np.sort(first)
        of_pair = np.empty(len(first), np.int64)
        of_pair[pair[firsts]] = self._new(partitions[new[firsts]])
        places[new] = of_pair[pair]
        self._count(places[np.delete(new, firsts)], 1)
        return places

    def leave(self, keys: Positions, partitions: Positions, places: Places) -> None:
        """Record that each key leaves its place and partition, and count one key fewer there."""
        self._left.add(keys, partitions, places)
        self._count(places, -1)

    def place(self, number: int) -> Place:
        """Return the partition and bucket of a place number."""
        partition, bucket = self._places[number]
        return Place(self.numbers.row(partition), bucket)

    def _new(self, partitions: Positions) -> Places:
        places = np.empty(len(partitions), np.int64)
        for partition, positions in rows_by_place(partitions) if len(partitions) else ():
            counts = self._counts.setdefault(partition, {})
            buckets = fill(counts, len(positions), self.room)
            places[positions] = self._places.of(partition, buckets)
        return places

    def _count(self, places: Places, change: int) -> None:
        for number, keys in zip(*np.unique(places, return_counts=True), strict=True):
            partition, bucket = self._places[int(number)]
            self._counts[partition][bucket] += change * int(keys)


class LeftPlaces:
    """The place of each key in each partition that it has left.

    ``add`` keeps the pairs of a key and a partition unsorted. ``find`` sorts them if it looks up a
    key that has left a partition. Small sorted parts are merged, so that each pair is sorted only a
    few times.
    """

    def __init__(self, keys: int) -> None:
        """Start without a pair, for keys with the numbers 0 to ``keys`` - 1."""
        self._has_left = np.zeros(keys, np.bool_)
        self._unsorted: list[tuple[Positions, Places]] = []
        self._parts: list[tuple[Positions, Places]] = []

    def add(self, keys: Positions, partitions: Positions, places: Places) -> None:
        """Add, for each key, the partition that it left and the place that it had there."""
        self._has_left[keys] = True
        self._unsorted.append((_pairs(keys, partitions), places))

    def find(self, keys: Positions, partitions: Positions) -> Places:
        """Return the place that was added last for each pair of a key and a partition; ``NOWHERE``
        for a pair without a place.
        """
        found = np.full(len(keys), NOWHERE, np.int64)
        asked = np.flatnonzero(self._has_left[keys])
        if not len(asked):
            return found
        self._sort()
        wanted = _pairs(keys[asked], partitions[asked])
        for pairs, places in self._parts:
            at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            is_here = pairs[at] == wanted
            found[asked[is_here]] = places[at[is_here]]
        return found

    def _sort(self) -> None:
        pending, self._unsorted = [*reversed(self._unsorted)], []  # the newest place counts
        size = sum(len(pairs) for pairs, _ in pending)
        while self._parts and len(self._parts[-1][0]) <= 2 * size:
            pending.append(self._parts.pop())
            size += len(pending[-1][0])
        if size:
            pairs, first = np.unique(
                np.concatenate([each for each, _ in pending]), return_index=True
            )
            self._parts.append((pairs, np.concatenate([each for _, each in pending])[first]))


def _pairs(keys: Positions, partitions: Positions) -> Positions:
    """Return each pair of key number and partition number as one integer."""
    return keys << 32 | partitions
