# SPDX-License-Identifier: Apache-2.0
"""The choice of the partitions and buckets that a compaction or rescale works on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import index
from typing import TypeAlias

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.binary_row import FramedRows
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.read.where import row_filter
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions
from lakeformat.types.amounts import parse_asked_duration
from lakeformat.types.arrow_types import to_arrow_schema

__all__ = [
    "WHOLE_TABLE",
    "Chosen",
    "ChosenFiles",
    "Idle",
    "Places",
    "chosen_partitions",
    "idle_millis",
]

Idle: TypeAlias = timedelta | str
"""The time since the last write to a partition, as a timedelta or a text such as ``"1 h"``."""

Places: TypeAlias = Collection[tuple[bytes, int]]
"""Buckets, each as a pair: the partition (its framed binary row) and the bucket number."""

BucketFiles: TypeAlias = dict[tuple[bytes, int], list[ManifestEntry]]
"""The entries of each bucket's files; the key is the partition (a framed binary row) and the
bucket.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The partitions and buckets that a compaction or rescale works on; by default the whole
    table.
    """

    where: Where | None = None
    """A condition on partition columns; None for no limit."""
    partitions: Partitions | None = None
    idle: Idle | None = None
    """Choose only partitions whose files are all at least this old; None for no limit."""
    buckets: Collection[int] | None = None
    places: Places | None = None
    """Choose only these buckets; None for no limit."""

    def at(self, places: Places | None) -> Chosen:
        """Return the same choice with only the buckets ``places``; unchanged if they are None."""
        return self if places is None else replace(self, places=places)


WHOLE_TABLE = Chosen()


class ChosenFiles:
    """Reads those live files of a snapshot that the choice selects.

    The constructor raises InvalidRequestError for a wrong choice, even if the table is empty.
    """

    def __init__(self, handle: TableHandle, chosen: Chosen) -> None:
        self._handle = handle
        self._places = chosen.places
        self._are_meant = chosen_partitions(handle.schema, chosen)
        self._numbers = _bucket_numbers(chosen.buckets)
        self._live: list[ManifestEntry] = []

    def by_bucket(self, snapshot: Snapshot) -> BucketFiles:
        """Return the entries of the chosen files of a snapshot, by bucket.

        Raise InvalidRequestError for a bucket number that the table does not have. Numbers are not
        checked if the table has no fixed number of buckets, or if the choice has ``places``.
        """
        self._live = entries = self._entries(snapshot, self._numbers)
        places = self._places
        if places is None:
            _require_buckets(self._handle, self._numbers, entries)
        meant = self._are_meant({entry.partition for entry in entries})
        found: BucketFiles = {}
        for entry in entries:
            place = (entry.partition, entry.bucket)
            if entry.partition in meant and (places is None or place in places):
                found.setdefault(place, []).append(entry)
        return found

    def all_live(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return the entries of all live files of a snapshot, chosen or not.

        Call ``by_bucket`` for this snapshot first.
        """
        return self._live if self._numbers is None else self._entries(snapshot, None)

    def _entries(self, snapshot: Snapshot, buckets: frozenset[int] | None) -> list[ManifestEntry]:
        return plan_columns(self._handle, snapshot, buckets=buckets).entries()


def chosen_partitions(schema: TableSchema, chosen: Chosen) -> Callable[[set[bytes]], set[bytes]]:
    """Return a function that selects the chosen partitions from a set of partitions.

    Partitions are as manifests store them: framed binary rows. Raise InvalidRequestError if
    ``where`` names a column that is not a partition column.
    """
    asked = row_filter(schema, chosen.where, chosen.partitions)
    if asked is None:
        return lambda there: there
    fields = partition_fields(schema)
    names = {field.name for field in fields}
    if others := sorted(asked.columns - names):
        keys = ", ".join(schema.partition_keys)
        known = (
            f"the table is partitioned by {keys}"
            if keys
            else "the table has none, so leave out 'where'"
        )
        raise InvalidRequestError(
            f"whole partitions are chosen, so 'where' may name partition columns only, not "
            f"{others[0]!r}; {known}"
        )

    def meant(there: set[bytes]) -> set[bytes]:
        rows = sorted(there)
        framed = FramedRows(pa.array(rows, pa.binary()), [field.type for field in fields])
        columns = [framed.column(position) for position in range(len(fields))]
        batch = pa.RecordBatch.from_arrays(
            [*columns, pa.nulls(len(rows))],  # a batch without columns has no rows
            schema=pa.schema([*to_arrow_schema(fields), pa.field("", pa.null())]),
        )
        mask = asked.mask(batch).to_pylist()
        return {row for row, is_meant in zip(rows, mask, strict=True) if is_meant}

    return meant


def _bucket_numbers(buckets: object) -> frozenset[int] | None:
    """Return the bucket numbers as ints; None if ``buckets`` is None.

    Raise InvalidRequestError for anything but a collection of whole numbers.
    """
    if buckets is None:
        return None
    if not isinstance(buckets, Collection) or isinstance(buckets, str | bytes):
        raise InvalidRequestError(
            f"buckets must be a list of numbers such as [0, 3], got {buckets!r}"
        )
    numbers = [number for number in buckets if not isinstance(number, bool)]
    if len(numbers) < len(buckets) or not all(hasattr(each, "__index__") for each in numbers):
        raise InvalidRequestError(f"buckets must be whole numbers such as [0, 3], got {buckets!r}")
    return frozenset(map(index, numbers))


def _require_buckets(
    handle: TableHandle, asked: frozenset[int] | None, found: Iterable[ManifestEntry]
) -> None:
    """Raise InvalidRequestError for a number in ``asked`` that no bucket of the table has."""
    count = 1 if is_unaware(handle) else handle.options.bucket
    if asked is None or count < 0:  # the number of buckets is not fixed
        return
    # A partition keeps the number of buckets with which it was written.
    strange = asked - set(range(count)) - {entry.bucket for entry in found}
    if strange:
        there = "bucket 0 is the only one" if count == 1 else f"choose from 0 to {count - 1}"
        raise InvalidRequestError(f"{handle.uri} has no bucket {min(strange)}: {there}")


def idle_millis(idle: Idle) -> int:
    """Return a duration in milliseconds.

    Raise InvalidRequestError if it is negative, or neither a timedelta nor a text such as ``"1
    h"``.
    """
    if not isinstance(idle, timedelta | str):
        raise InvalidRequestError(f"idle must be a timedelta or a text such as '1 h', got {idle!r}")
    try:
        millis = (
            idle // timedelta(milliseconds=1)
            if isinstance(idle, timedelta)
            else parse_asked_duration(idle)
        )
    except ValueError as reason:
        raise InvalidRequestError(
            f"idle must be a time such as '1 h', got {idle!r}: {reason}"
        ) from None
    if millis < 0:
        raise InvalidRequestError(f"idle must not be negative, got {idle!r}")
    return millis
