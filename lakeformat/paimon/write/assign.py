# SPDX-License-Identifier: Apache-2.0
"""Finds the place of each row: the bucket of a partition to which the row is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.binary_row import encode_columns
from lakeformat.paimon.datafile.external_paths import ExternalPaths, TablePlace, external_paths
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET, UNAWARE_BUCKET
from lakeformat.paimon.partition import partition_fields, partition_path
from lakeformat.paimon.partition_filter import PartitionFilter
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.distinct import number_distinct
from lakeformat.rows.groups import Positions

if TYPE_CHECKING:
    from lakeformat.paimon.bucketing import BucketFunction

__all__ = [
    "Assigner",
    "NewFiles",
    "PartitionNumbers",
    "Place",
    "Places",
    "RowsByPlace",
    "bucket_places",
    "rows_by_place",
]

Places: TypeAlias = npt.NDArray[np.int64]
"""For each row, the number of its place; a place is a bucket of a partition."""


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket of a partition; the partition is a framed binary row."""

    partition: bytes
    bucket: int


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The new files of one bucket, for a commit message."""

    place: Place
    data: tuple[DataFileMeta, ...]
    changelog: tuple[DataFileMeta, ...] = ()


def bucket_places(handle: TableHandle, place: Place) -> tuple[str, ExternalPaths | None]:
    """Return the directory of a bucket, and the external paths that replace it.

    The external paths are None if the table uses none.
    """
    layout = handle.layout
    partition = partition_path(handle.schema, place.partition)
    directory = layout.bucket_directory(place.bucket, partition)
    if handle.options.data_file_external_paths_strategy == "none":
        return directory, None
    external = external_paths(
        handle.options,
        layout.bucket_below_root(place.bucket, partition),
        TablePlace(handle.storage, handle.uri, handle.external_roots),
        handle.environment.random_fraction,
    )
    return directory, external


class PartitionNumbers:
    """Numbers the partitions of a writer's rows."""

    def __init__(self, schema: TableSchema, within: PartitionFilter | None) -> None:
        """Number the partitions of rows of this schema.

        A row outside of the partitions ``within`` is refused with InvalidRequestError;
        ``within=None`` allows all partitions.
        """
        self._schema = schema
        self._within = within
        self._columns = [schema.column_names.index(key) for key in schema.partition_keys]
        self._types = [field.type for field in partition_fields(schema)]
        self._partitions: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def __call__(self, rows: pa.RecordBatch, numbers: Sequence[int] | Positions) -> Places:
        """Return the partition number of each row.

        Raise InvalidRequestError for a row whose partition is refused; the error names the row by
        its number in ``numbers``.
        """
        if not self._columns:
            number = self.number(EMPTY_ROW, numbers[0])
            return np.full(rows.num_rows, number, np.int64)
        columns = [rows.column(position) for position in self._columns]
        codes, first_of = number_distinct(columns)
        examples = [column.take(pa.array(first_of)) for column in columns]
        framed = encode_columns(examples, self._types).to_pylist()
        found = [
            self.number(partition, numbers[int(row)])
            for partition, row in zip(framed, first_of, strict=True)
        ]
        return np.array(found, np.int64)[codes]

    @property
    def rows(self) -> Sequence[bytes]:
        """The partitions as framed binary rows, in the order of their numbers."""
        return tuple(self._partitions)

    def row(self, number: int) -> bytes:
        """Return the partition with this number as a framed binary row."""
        return self._partitions[number]

    def number(self, partition: bytes, row: int | np.int64) -> int:
        """Return the number of ``partition``, a framed binary row; a new one gets the next number.

        Raise InvalidRequestError if rows of this partition are refused; the error names the row
        number ``row``.
        """
        number = self._numbers.get(partition)
        if number is None:
            self._require_within(partition, row)
            number = self._numbers[partition] = len(self._partitions)
            self._partitions.append(partition)
        return number

    def _require_within(self, partition: bytes, row: int | np.int64) -> None:
        if self._columns:
            # this call raises for values that cannot name a directory
            partition_path(self._schema, partition)
        if self._within is None:
            return
        [is_within] = self._within.mask(pa.array([partition], pa.large_binary()))
        if not is_within:
            place = partition_path(self._schema, partition)
            raise InvalidRequestError(
                f"row {row} is in partition {place}, which this overwrite does not replace: add "
                "the partition to the overwrite, or append the row"
            )


class Assigner:
    """Finds the place of each row: applies the table's bucket function to the bucket key."""

    def __init__(
        self,
        schema: TableSchema,
        partitions: PartitionNumbers,
        function: BucketFunction | None = None,
    ) -> None:
        """Find the buckets of a table; ``function`` replaces the bucket function of its schema."""
        self._partitions = partitions
        self._bucket_count, self._buckets = _buckets(schema, function)
        is_postponed = schema.table_options.bucket == POSTPONE_BUCKET
        self._only_bucket = POSTPONE_BUCKET if is_postponed else 0

    def __call__(self, rows: pa.RecordBatch, numbers: Sequence[int] | Positions) -> Places:
        """Return the place number of each row's bucket.

        Errors name a row by its number in ``numbers``.
        """
        partitions = self._partitions(rows, numbers)
        if self._buckets is None:
            return partitions
        buckets = self._buckets(rows)
        return partitions * self._bucket_count + buckets if partitions.any() else buckets

    def place(self, number: int) -> Place:
        """Return the partition and bucket of a place number."""
        if self._buckets is None:
            return Place(self._partitions.row(number), self._only_bucket)
        partition, bucket = divmod(number, self._bucket_count)
        return Place(self._partitions.row(partition), bucket)


@dataclass(frozen=True, slots=True)
class RowsByPlace:
    """Positions of rows, grouped by place number; rows with the same number keep their order."""

    order: Positions
    places: Places
    """The numbers of the places that have rows."""
    starts: Positions
    """For each place, the index in ``order`` at which the rows of this place start."""

    def __iter__(self) -> Iterator[tuple[int, Positions]]:
        """Yield each place number with the positions of its rows."""
        ends = np.append(self.starts[1:], len(self.order))
        for place, start, end in zip(self.places, self.starts, ends, strict=True):
            yield int(place), self.order[start:end]


def rows_by_place(places: Places) -> RowsByPlace:
    """Group the positions of rows by their place numbers."""
    if len(places) and places.min() == (only := places.max()):
        return RowsByPlace(np.arange(len(places)), np.array([only]), np.zeros(1, np.int64))
    # numpy uses a much faster sort for narrow integers
    narrow = places.astype(np.min_scalar_type(places.max(initial=0)))
    order = np.argsort(narrow, kind="stable")
    present, counts = (
        np.unique(places, return_counts=True) if narrow.itemsize > 2 else _counted(narrow)
    )
    return RowsByPlace(order, present, np.cumsum(counts) - counts)


def _counted(numbers: npt.NDArray[np.unsignedinteger]) -> tuple[Places, Positions]:
    counts = np.bincount(numbers)
    present = np.flatnonzero(counts)
    return present, counts[present]


def _buckets(
    schema: TableSchema, given: BucketFunction | None
) -> tuple[int, Callable[[pa.RecordBatch], Places] | None]:
    """Return the number of buckets per partition, and the function that returns the bucket of each
    row.

    Without a fixed number of buckets, return 1 and None.
    """
    options = schema.table_options
    count = options.bucket
    if count in (UNAWARE_BUCKET, POSTPONE_BUCKET):
        return 1, None
    from lakeformat.paimon.bucketing import bucket_function
    from lakeformat.paimon.schema_changes.table_rules import check_bucket_key

    names = options.bucket_key or tuple(field.name for field in schema.key_fields)
    check_bucket_key(schema, names)  # other engines do not check the columns of a bucket key
    positions = [schema.column_names.index(name) for name in names]
    types = [schema.fields[position].type for position in positions]

    try:
        function = given or bucket_function(options.bucket_function, types, count)
    except (InvalidRequestError, UnsupportedError) as reason:
        key = ", ".join(names)
        raise type(reason)(f"cannot find buckets by the bucket key {key}: {reason}") from None

    def buckets(rows: pa.RecordBatch) -> Places:
        return function([rows.column(position) for position in positions]).astype(np.int64)

    return count, buckets
