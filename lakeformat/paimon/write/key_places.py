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
class FoundKeys:
    """The partition and bucket in which the table has each of the keys that were looked up."""

    partitions: list[bytes]
    """The partitions of the table that have files, as framed binary rows."""
    partition_of: Positions
    """For each key, the position of its partition in ``partitions``; ``NOWHERE`` for a new key."""
    bucket_of: Buckets
    counts: Mapping[Place, int]
    """The number of all keys in each bucket of the table."""


FindKeys: TypeAlias = Callable[[pa.Array], FoundKeys]
"""A function that looks up distinct keys in the table, given as framed binary rows."""


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
    _places: PlaceNumbers = field(default_factory=PlaceNumbers)
    _counts: dict[int, dict[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: PartitionNumbers, room: Room, found: FoundKeys) -> KeyPlaces:
        """Return the places of keys before the write, as found in the table."""
        own = np.array([numbers.number(row, 0) for row in found.partitions], np.int64)
        known = np.flatnonzero(found.partition_of != NOWHERE)
        partition_of = np.full(len(found.partition_of), NOWHERE, np.int64)
        partition_of[known] = own[found.partition_of[known]]
        self = cls(numbers, room, partition_of, np.full(len(partition_of), NOWHERE, np.int64))
        for place, count in found.counts.items():
            buckets = self._counts.setdefault(numbers.number(place.partition, 0), {})
            buckets[place.bucket] = count
        for partition, positions in rows_by_place(partition_of[known]) if len(known) else ():
            keys = known[positions]
            self.place_of[keys] = self._places.of(partition, found.bucket_of[keys])
        return self

    def new(self, partitions: Positions) -> Places:
        """Return a place number for each new key.

        ``partitions`` has the partition number of each key. Buckets are filled in the order of the
        keys.
        """
        places = np.empty(len(partitions), np.int64)
        for partition, positions in rows_by_place(partitions) if len(partitions) else ():
            counts = self._counts.setdefault(partition, {})
            buckets = fill(counts, len(positions), self.room)
            places[positions] = self._places.of(partition, buckets)
        return places

    def leave(self, places: Places) -> None:
        """Count one key fewer in the bucket of each of ``places``, because keys have moved away."""
        for number, keys in zip(*np.unique(places, return_counts=True), strict=True):
            partition, bucket = self._places[int(number)]
            self._counts[partition][bucket] -= int(keys)

    def place(self, number: int) -> Place:
        """Return the partition and bucket of a place number."""
        partition, bucket = self._places[number]
        return Place(self.numbers.row(partition), bucket)
