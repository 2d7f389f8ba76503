"""Arrow tables as the JSON that the Java peer reads and writes; peer/Values.java is its mirror.

A row is the list of its values. Numbers are numbers, FLOAT and DOUBLE their IEEE 754 bits, bytes
hexadecimal digits, a DECIMAL its digits, a DATE its day, a TIME its millisecond, a timestamp its
nanosecond since 1970; an ARRAY or ROW is a list, a MAP or MULTISET a list of pairs.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tests.golden.values import assert_same_rows

__all__ = ["assert_same", "json_rows", "to_json"]

NANOS_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def json_rows(table: pa.Table) -> list[list[Any]]:
    """Every row of a table that a scan returned, or that will be written."""
    columns = [[to_json(value) for value in column] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def to_json(value: pa.Scalar) -> Any:
    """The type decides, so that nothing is guessed from the value."""
    kind = value.type
    if not value.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        return value.value * NANOS_PER_UNIT[kind.unit]
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return value.value
    if pa.types.is_float32(kind):
        return struct.unpack("<i", struct.pack("<f", value.as_py()))[0]
    if pa.types.is_float64(kind):
        return struct.unpack("<q", struct.pack("<d", value.as_py()))[0]
    if pa.types.is_decimal(kind):
        return f"{value.as_py():f}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return value.as_py().hex()
    if pa.types.is_struct(kind):
        return [to_json(part) for _, part in value.items()]
    if pa.types.is_map(kind):
        return [[to_json(part) for part in entry.values()] for entry in value.values]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [to_json(element) for element in value.values]
    return value.as_py()


def assert_same(
    columns: Sequence[str], actual: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]]
) -> None:
    """Fail with the rows that are missing or unexpected; their order does not matter."""
    named = [[dict(zip(columns, row, strict=True)) for row in rows] for rows in (actual, expected)]
    assert_same_rows(*named)
