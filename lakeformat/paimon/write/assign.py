"""Which partition and bucket each row goes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.binary_row import encode_columns
from lakeformat.paimon.bucketing import bucket_function
from lakeformat.paimon.handle import UNAWARE_BUCKET
from lakeformat.paimon.layout import POSTPONE_BUCKET
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW
from lakeformat.paimon.partition import partition_fields, partition_path
from lakeformat.paimon.partition_filter import PartitionFilter
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.schema_changes.table_rules import check_bucket_key
from lakeformat.rows.groups import Positions

__all__ = [
    "Assigner",
    "PartitionNumbers",
    "Place",
    "Places",
    "RowsByPlace",
    "rows_by_place",
]

Places: TypeAlias = npt.NDArray[np.int64]
"""The number of each row's place."""


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket of a partition."""

    partition: bytes
    bucket: int


class PartitionNumbers:
    """Numbers the partitions of a writer's rows, in the order they come up."""

    def __init__(self, schema: TableSchema, within: PartitionFilter | None) -> None:
        """Rows outside the partitions ``within`` are refused."""
        self._schema = schema
        self._within = within
        self._columns = [schema.column_names.index(key) for key in schema.partition_keys]
        self._types = [field.type for field in partition_fields(schema)]
        self._partitions: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def __call__(self, rows: pa.RecordBatch, numbers: Sequence[int] | Positions) -> Places:
        """The number of each row's partition; ``numbers`` are what messages call the rows."""
        if not self._columns:
            number = self.number(EMPTY_ROW, numbers[0])
            return np.full(rows.num_rows, number, np.int64)
        columns = [rows.column(position) for position in self._columns]
        codes, first_of = _codes(columns)
        examples = [column.take(pa.array(first_of)) for column in columns]
        framed = encode_columns(examples, self._types).to_pylist()
        found = [
            self.number(partition, numbers[int(row)])
            for partition, row in zip(framed, first_of, strict=True)
        ]
        return np.array(found, np.int64)[codes]

    def row(self, number: int) -> bytes:
        """The framed row of a partition."""
        return self._partitions[number]

    def number(self, partition: bytes, row: int | np.int64) -> int:
        """The number of a partition; ``row`` is what messages call the row that is in it."""
        number = self._numbers.get(partition)
        if number is None:
            self._require_within(partition, row)
            number = self._numbers[partition] = len(self._partitions)
            self._partitions.append(partition)
        return number

    def _require_within(self, partition: bytes, row: int | np.int64) -> None:
        partition_path(self._schema, partition)  # refuses values there is no directory for
        if self._within is None:
            return
        [is_within] = self._within.mask(pa.array([partition], pa.large_binary()))
        if not is_within:
            place = partition_path(self._schema, partition)
            raise InvalidRequestError(
                f"row {row} is in partition {place}, which this overwrite does not replace: name "
                "the partition, or append"
            )


class Assigner:
    """Numbers the places of a writer's rows where a function of the key says the bucket."""

    def __init__(self, schema: TableSchema, partitions: PartitionNumbers) -> None:
        self._partitions = partitions
        self._bucket_count, self._buckets = _buckets(schema)
        is_postponed = schema.table_options.bucket == POSTPONE_BUCKET
        self._only_bucket = POSTPONE_BUCKET if is_postponed else 0

    def __call__(self, rows: pa.RecordBatch, numbers: Sequence[int] | Positions) -> Places:
        """The place of each row; ``numbers`` are what messages call the rows."""
        partitions = self._partitions(rows, numbers)
        if self._buckets is None:
            return partitions
        buckets = self._buckets(rows)
        return partitions * self._bucket_count + buckets if partitions.any() else buckets

    def place(self, number: int) -> Place:
        """What a number stands for."""
        if self._buckets is None:
            return Place(self._partitions.row(number), self._only_bucket)
        partition, bucket = divmod(number, self._bucket_count)
        return Place(self._partitions.row(partition), bucket)


@dataclass(frozen=True, slots=True)
class RowsByPlace:
    """Positions of rows, those of one place together and in the order the rows came in."""

    order: Positions
    places: Places
    """The places there are."""
    starts: Positions
    """Where in ``order`` each of them begins."""

    def __iter__(self) -> Iterator[tuple[int, Positions]]:
        """The rows of each place."""
        ends = np.append(self.starts[1:], len(self.order))
        for place, start, end in zip(self.places, self.starts, ends, strict=True):
            yield int(place), self.order[start:end]


def rows_by_place(places: Places) -> RowsByPlace:
    """Bring the rows of each place together."""
    if len(places) and places.min() == (only := places.max()):
        return RowsByPlace(np.arange(len(places)), np.array([only]), np.zeros(1, np.int64))
    # Numpy sorts narrow numbers by counting, many times as fast.
    narrow = places.astype(np.min_scalar_type(places.max(initial=0)))
    order = np.argsort(narrow, kind="stable")
    present, counts = (
        np.unique(places, return_counts=True) if narrow.itemsize > 2 else _counted(narrow)
    )
    return RowsByPlace(order, present, np.cumsum(counts) - counts)


def _counted(numbers: npt.NDArray[np.unsignedinteger]) -> tuple[Places, Positions]:
    """The numbers there are, and how often each is."""
    counts = np.bincount(numbers)
    present = np.flatnonzero(counts)
    return present, counts[present]


def _buckets(schema: TableSchema) -> tuple[int, Callable[[pa.RecordBatch], Places] | None]:
    """How many buckets a partition has, and which of them rows are in."""
    options = schema.table_options
    count = options.bucket
    if count in (UNAWARE_BUCKET, POSTPONE_BUCKET):
        return 1, None
    names = options.bucket_key or tuple(field.name for field in schema.key_fields)
    check_bucket_key(schema, names)  # other engines may name any column
    positions = [schema.column_names.index(name) for name in names]
    types = [schema.fields[position].type for position in positions]

    function = bucket_function(options.bucket_function, types, count)

    def buckets(rows: pa.RecordBatch) -> Places:
        return function([rows.column(position) for position in positions]).astype(np.int64)

    return count, buckets


def _codes(columns: list[pa.Array]) -> tuple[Positions, Positions]:
    """Rows with equal values under one number, and the first row of each number."""
    codes: Positions = np.zeros(len(columns[0]), np.int64)
    first_of: Positions = np.zeros(0, np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        here = max(len(encoded.dictionary), 1)
        codes, first_of = _renumbered(codes * here + numbers, max(len(first_of), 1) * here)
    return codes, first_of


def _renumbered(codes: Positions, bound: int) -> tuple[Positions, Positions]:
    """Without numbers nobody has, and the first row of each; all are below ``bound``."""
    if bound > 4 * len(codes):
        _, first_of, codes = np.unique(codes, return_index=True, return_inverse=True)
        return codes, first_of
    first_of = np.full(bound, -1, np.int64)
    first_of[codes[::-1]] = np.arange(len(codes))[::-1]
    used = first_of >= 0
    return (np.cumsum(used) - 1)[codes], first_of[used]
