# SPDX-License-Identifier: Apache-2.0
"""Assigns rows to dynamic buckets: a partition gets as many buckets as its keys need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakeformat.paimon.bucketing import Buckets, row_hashes
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.write.assign import PartitionNumbers, Place, Places, rows_by_place
from lakeformat.paimon.write.hash_index import HashIndex, IndexChange
from lakeformat.paimon.write.key_hashes import Hashes, KeyHashes, Room
from lakeformat.paimon.write.sequences import SequenceNumbers
from lakeformat.rows.groups import Positions

__all__ = ["DynamicAssigner", "PlaceNumbers", "room_of"]


class PlaceNumbers:
    """Numbers the buckets of all partitions, from 0 on."""

    def __init__(self) -> None:
        self._places: list[tuple[int, int]] = []
        self._numbers: dict[int, Places] = {}

    def of(self, partition: int, buckets: Buckets) -> Places:
        """Return the place number of each row of one partition, given the buckets of the rows.

        A new bucket gets the next number.
        """
        numbers = self._numbers.get(partition, np.empty(0, np.int64))
        there = np.flatnonzero(np.bincount(buckets))
        if there[-1] >= len(numbers):
            more = np.full(int(there[-1]) + 1 - len(numbers), -1, np.int64)
            numbers = np.append(numbers, more)
        new = there[numbers[there] < 0]
        numbers[new] = np.arange(len(self._places), len(self._places) + len(new))
        self._places += [(partition, int(bucket)) for bucket in new]
        self._numbers[partition] = numbers
        return numbers[buckets]

    def __getitem__(self, number: int) -> tuple[int, int]:
        return self._places[number]


class DynamicAssigner:
    """Finds the bucket of a known key in the hash index, and assigns a bucket to each new key."""

    def __init__(
        self,
        handle: TableHandle,
        partitions: PartitionNumbers,
        index: HashIndex,
        sequences: SequenceNumbers,
    ) -> None:
        schema = handle.schema
        self._partitions = partitions
        self._index = index
        self._sequences = sequences
        self._room = room_of(handle)
        self._columns = [schema.column_names.index(field.name) for field in schema.key_fields]
        self._types = [field.type for field in schema.key_fields]
        self._known: dict[int, KeyHashes] = {}
        self._places = PlaceNumbers()

    def __call__(self, rows: pa.RecordBatch, numbers: Sequence[int] | Positions) -> Places:
        """Return the place number of each row's bucket.

        Errors name a row by its number in ``numbers``.
        """
        partitions = self._partitions(rows, numbers)
        hashes = row_hashes([rows.column(position) for position in self._columns], self._types)
        places = np.empty(len(hashes), np.int64)
        by_partition = rows_by_place(partitions)
        there = [self._partitions.row(int(number)) for number in by_partition.places]
        self._sequences.look_up(Place(partition, 0) for partition in there)
        for partition, positions in by_partition:
            places[positions] = self._places_in(partition, hashes[positions])
        return places

    def place(self, number: int) -> Place:
        """Return the partition and bucket of a place number."""
        partition, bucket = self._places[number]
        return Place(self._partitions.row(partition), bucket)

    def finish(self) -> dict[Place, IndexChange]:
        """Write index files for buckets with new keys.

        Return, for each of these buckets, the added and the replaced index files.
        """
        found: dict[Place, IndexChange] = {}
        for number, keys in self._known.items():
            partition = self._partitions.row(number)
            for bucket, change in self._index.write(partition, keys.changed()).items():
                found[Place(partition, bucket)] = change
        return found

    def read_by(self, place: Place) -> str:
        """Return a digest of the index files that were read for the partition of a place."""
        return self._index.digest(place.partition)

    def abort(self) -> None:
        """Remove the index files written so far."""
        self._index.abort()

    def _places_in(self, number: int, hashes: Hashes) -> Places:
        keys = self._known.get(number)
        if keys is None:
            partition = self._partitions.row(number)
            known = self._index.read(partition, self._sequences.live_buckets(partition))
            keys = self._known[number] = KeyHashes(known, self._room)
        return self._places.of(number, keys.assign(hashes))


def room_of(handle: TableHandle) -> Room:
    """Return the table's limits for the keys of a bucket, and for the buckets of a partition."""
    options = handle.options
    most = options.dynamic_bucket_max_buckets
    return Room(
        options.dynamic_bucket_target_row_num,
        None if most == -1 else most,
        handle.environment.random_fraction,
    )
