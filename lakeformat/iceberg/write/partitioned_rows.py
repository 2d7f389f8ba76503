# SPDX-License-Identifier: Apache-2.0
"""Divides rows by partition, with transforms that are applied to whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.metadata.single_value_bytes import single_value_bytes
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.partition_text import partition_text
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.transforms import Transform, TransformKind, parse_transform
from lakeformat.iceberg.types import PrimitiveType, StructType
from lakeformat.types.arrow_memory import array_of
from lakeformat.types.arrow_memory import numbers as numbers_of
from lakeformat.types.wide_decimal import exceeds_digits

__all__ = ["PartitionedRows", "Splitter", "source_values"]

_ROOM = 1 << 62
"""The limit for the number of possible partitions, so that partition numbers fit into 64 bits.

Each partition field multiplies the number of possible partitions. If a field would exceed the
limit, the partitions found so far are first numbered again without gaps.
"""


@dataclass(frozen=True, slots=True)
class PartitionedRows:
    """The rows of one partition."""

    key: tuple[bytes | None, ...]
    """The partition values as bytes; equal for equal partitions, even if a value is NaN."""
    partition: pa.StructArray
    """The partition values, as an array of length one."""
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Splitter:
    """Divides rows by the partitions of one spec."""

    spec: PartitionSpec
    schema: Schema
    partition: StructType
    """The type of the partition values."""

    def split(self, rows: pa.Table) -> Iterator[PartitionedRows]:
        """Yield the rows of each partition in their order, beginning with the partition of the
        first row.

        Raise the errors of ``values``.
        """
        if not rows.num_rows:
            return
        if not self.spec.fields:
            yield PartitionedRows((), pa.array([{}], pa.struct([])), rows)
            return
        values = self.values(rows)
        numbers = _partition_numbers(values)
        order = np.argsort(numbers, kind="stable")
        sizes = np.bincount(numbers)
        starts = np.cumsum(sizes) - sizes
        together = rows if len(sizes) == 1 else rows.take(array_of(order))
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            first = order[start : start + 1]
            parts = [each.take(array_of(first)) for each in values]
            names = [field.name for field in self.spec.fields]
            yield PartitionedRows(
                tuple(single_value_bytes(each)[0].as_py() for each in parts),
                pa.StructArray.from_arrays(parts, names),
                together.slice(start, size),
            )

    def values(self, rows: pa.Table) -> list[pa.Array]:
        """Return the values of each partition field for all rows.

        Raise ``UnsupportedError`` for a transform that this version does not know, and
        ``InvalidRequestError`` for a row whose partition value does not fit its type.
        """
        return [self._values(place, rows) for place in range(len(self.spec.fields))]

    def directory(self, partition: pa.StructArray) -> str:
        """Return the directory of a partition, relative to the directory of data files, with a
        final slash.
        """
        names = []
        for place, field in enumerate(self.spec.fields):
            kind = self.partition.fields[place].type
            assert isinstance(kind, PrimitiveType)
            text = partition_text(field.transform, kind, partition.field(place))
            names.append(f"{quote_plus(field.name)}={quote_plus(text)}/")
        return "".join(names)

    def _values(self, place: int, rows: pa.Table) -> pa.Array:
        field = self.spec.fields[place]
        if len(field.source_ids) > 1:
            raise UnsupportedError(
                f"this version writes no partitions by the transform {field.transform!r} of "
                "several columns: use the engine that created the partition spec"
            )
        kind = to_arrow_type(self.partition.fields[place].type)
        source = source_values(rows, self.schema, field.source_id)
        if source is None:  # a dropped column: its transform is void
            return pa.nulls(rows.num_rows, kind)
        transform = parse_transform(field.transform)
        found = transform.apply(source)
        if transform.kind is TransformKind.TRUNCATE and pa.types.is_decimal(found.type):
            _require_digits(found, source, self.schema.name_of(field.source_id), transform)
        return found


def _require_digits(
    found: pa.Array, source: pa.Array, column: str | None, transform: Transform
) -> None:
    """Raise ``InvalidRequestError`` if a truncated decimal has more digits than its type."""
    halves = numbers_of(found)
    exceeds = array_of(exceeds_digits(halves[:, 0], halves[:, 1], found.type.precision))
    place = pc.index(pc.and_(found.is_valid(), exceeds), True).as_py()
    if place >= 0:
        raise InvalidRequestError(
            f"a row has {source[place]} in column {column!r}. Its partition by {transform.text} "
            f"would be {found[place]}, which has more digits than {found.type}. Leave out the row, "
            "or give the column a larger precision by ALTER TABLE in Spark"
        )


def source_values(rows: pa.Table, schema: Schema, field_id: int) -> pa.Array | None:
    """Return the values of a column, or of a field inside of structs; None if the id does not
    exist.
    """
    path = _path(schema.struct, field_id)
    if path is None:
        return None
    values = rows.column(path[0])
    if len(path) > 1:
        values = pc.struct_field(values, path[1:])
    found = values.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _path(kind: StructType, field_id: int) -> list[int] | None:
    for place, field in enumerate(kind.fields):
        if field.id == field_id:
            return [place]
        if isinstance(field.type, StructType):
            inner = _path(field.type, field_id)
            if inner is not None:
                return [place, *inner]
    return None


def _partition_numbers(values: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Return the partition number of each row; numbers are in the order of first occurrence."""
    numbers: NDArray[np.int64] = np.zeros(len(values[0]), np.int64)
    count = 1
    for each in values:
        encoded = each.dictionary_encode(null_encoding="encode")
        distinct = max(len(encoded.dictionary), 1)
        if count > _ROOM // distinct:
            numbers, count = _renumbered(numbers)
        numbers = numbers * distinct + encoded.indices.to_numpy(zero_copy_only=False)
        count *= distinct
    return _renumbered(numbers)[0]


def _renumbered(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return the numbers changed to 0, 1, 2 … in the order of first occurrence, and the count of
    distinct numbers.
    """
    encoded = array_of(numbers).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
