# SPDX-License-Identifier: Apache-2.0
"""Assigns sequence numbers to the new rows of each bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.paimon.expiry_race import again_if_overtaken, is_overtaken
from lakeformat.paimon.handle import TableHandle, has_hash_index, is_unaware
from lakeformat.paimon.metadata.manifest import ManifestColumns, live_rows, read_manifests
from lakeformat.paimon.metadata.manifest_list import manifests_of
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.metadata.simple_stats import may_contain_any
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.partition import partition_fields, partition_path
from lakeformat.paimon.write.assign import Place, RowsByPlace
from lakeformat.rows.groups import Positions
from lakeformat.types.count_text import counted

__all__ = ["SequenceNumbers"]


class SequenceNumbers:
    """Assigns sequence numbers to the rows of each bucket, above the numbers of its live files.

    Of rows with one key, the row with the higher number is newer. Manifests are read when a
    partition is first needed.
    """

    def __init__(self, handle: TableHandle, snapshot: Snapshot | None) -> None:
        """Continue the numbers of ``snapshot``; without one, as in an overwrite, start at 0."""
        self._handle = handle
        self._snapshot = None if is_unaware(handle) else snapshot
        self._next: dict[Place, int] = {}
        self._known: set[bytes] = set()

    def look_up(self, places: Iterable[Place]) -> None:
        """Read the live files in the partitions of ``places``.

        Raise InvalidRequestError if a partition has another number of buckets than the option
        ``bucket``.
        """
        new = {place.partition for place in places} - self._known
        self._known |= new
        if new and self._snapshot is not None:
            self._read(new)

    def live_buckets(self, partition: bytes) -> set[int]:
        """Return the buckets of a partition that have files."""
        self.look_up([Place(partition, 0)])
        return {place.bucket for place in self._next if place.partition == partition}

    def take(self, place: Place, rows: int) -> int:
        """Reserve sequence numbers for ``rows`` rows of a bucket, and return the first one."""
        first = self._next.get(place, 0)
        self._next[place] = first + rows
        return first

    def number(self, rows: RowsByPlace, place_of: Callable[[int], Place]) -> Positions:
        """Return the sequence number of each row.

        In a bucket, the numbers ascend in the order of the rows.
        """
        self.look_up(place_of(int(place)) for place in rows.places)
        numbers = np.empty(len(rows.order), np.int64)
        for place, positions in rows:
            first = self.take(place_of(place), len(positions))
            numbers[positions] = np.arange(first, first + len(positions))
        return numbers

    def end_run(self) -> None:
        """Do nothing after a sorted run was written: later rows of its keys have higher numbers
        anyway.
        """

    def _read(self, partitions: set[bytes]) -> None:
        live = self._live_files(partitions)
        self._require_bucket_count(live)
        # Postponed rows have numbers of their own.
        live = live.filter(live.bucket.numbers >= 0)
        rows = zip(
            live.partition.values(),
            live.bucket.numbers.tolist(),
            live.max_sequence_number.numbers.tolist(),
            strict=True,
        )
        for partition, bucket, number in rows:
            assert partition is not None
            place = Place(partition, bucket)
            self._next[place] = max(self._next.get(place, 0), number + 1)

    def _live_files(self, partitions: set[bytes]) -> ManifestColumns:
        handle, snapshot = self._handle, self._snapshot
        assert snapshot is not None
        try:
            return self._files_of(partitions, snapshot)
        except CorruptTableError:
            # The hash index and the files must be of the same snapshot.
            if has_hash_index(handle) or not is_overtaken(handle, snapshot.id):
                raise
        return again_if_overtaken(handle, lambda: self._newest_files(partitions))

    def _newest_files(self, partitions: set[bytes]) -> ManifestColumns:
        self._snapshot = (
            latest_snapshot(self._handle.storage, self._handle.layout) or self._snapshot
        )
        assert self._snapshot is not None
        return self._files_of(partitions, self._snapshot)

    def _files_of(self, partitions: set[bytes], snapshot: Snapshot) -> ManifestColumns:
        handle = self._handle
        types = [field.type for field in partition_fields(handle.schema)]
        manifests = [
            manifest
            for manifest in manifests_of(handle.storage, handle.layout, snapshot)
            if may_contain_any(manifest.partition_stats, partitions, types)
        ]
        read = read_manifests(handle.storage, handle.layout, manifests)
        wanted = pa.array(list(partitions), pa.large_binary())
        there = read.filter(pc.is_in(read.partition.to_arrow(), wanted).to_numpy(False))
        return there.take(live_rows(there, f"snapshot {snapshot.id} of {handle.uri}"))

    def _require_bucket_count(self, live: ManifestColumns) -> None:
        count = self._handle.options.bucket
        others = (live.bucket.numbers >= 0) & (live.total_buckets.numbers != count)
        if not others.any():
            return
        [entry] = live.entries(np.flatnonzero(others)[:1])
        path = partition_path(self._handle.schema, entry.partition)
        place = f"{f'partition {path} of ' if path else ''}{self._handle.uri}"
        has = f"{place} has {counted(entry.total_buckets, 'bucket')}"
        if entry.total_buckets == self._newest_count():
            raise InvalidRequestError(
                f"{has} now but had {count} when the table was opened: open the table again and "
                "write the rows again"
            )
        raise InvalidRequestError(
            f"{has}, but option 'bucket' is '{count}': rows can only be added with the same bucket "
            f"count. Set the option to '{entry.total_buckets}', rescale the table with "
            f"`lake rescale {self._handle.argument}`, or overwrite "
            f"{'the partition' if path else 'the table'}"
        )

    def _newest_count(self) -> int | None:
        """Return the newest value of the option ``bucket``; None if the table was dropped."""
        storage, layout = self._handle.storage, self._handle.layout
        newest = latest_schema_id(storage, layout)
        if newest is None:
            return None
        return read_schema(storage, layout, newest).table_options.bucket
