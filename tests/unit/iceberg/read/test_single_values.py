"""Bounds are decoded from the binary form of single values, also of earlier types."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.iceberg.read.single_values import single_values
from lakeformat.iceberg.types import PrimitiveType

NEW_YEAR = datetime(2024, 1, 1)
MICROS = (NEW_YEAR - datetime(1970, 1, 1)).total_seconds() * 10**6

EXAMPLES: list[tuple[PrimitiveType, bytes, Any]] = [
    (PrimitiveType("boolean"), b"\x01", True),
    (PrimitiveType("int"), struct.pack("<i", -5), -5),
    (PrimitiveType("long"), struct.pack("<q", 2**40), 2**40),
    (PrimitiveType("float"), struct.pack("<f", 1.5), 1.5),
    (PrimitiveType("double"), struct.pack("<d", -0.25), -0.25),
    (PrimitiveType("date"), struct.pack("<i", 1), date(1970, 1, 2)),
    (PrimitiveType("time"), struct.pack("<q", 1), time(0, 0, 0, 1)),
    (PrimitiveType("timestamp"), struct.pack("<q", int(MICROS)), NEW_YEAR),
    (
        PrimitiveType("timestamptz"),
        struct.pack("<q", int(MICROS)),
        NEW_YEAR.replace(tzinfo=UTC),
    ),
    (PrimitiveType("string"), "é".encode(), "é"),
    (PrimitiveType("binary"), b"\x00\xff", b"\x00\xff"),
    (PrimitiveType("fixed", (2,)), b"\x00\xff", b"\x00\xff"),
    (PrimitiveType("uuid"), bytes(range(16)), bytes(range(16))),
    (PrimitiveType("decimal", (9, 2)), (-1420).to_bytes(2, "big", signed=True), Decimal("-14.20")),
]
PROMOTED: list[tuple[PrimitiveType, bytes, Any]] = [
    (PrimitiveType("long"), struct.pack("<i", -5), -5),
    (PrimitiveType("double"), struct.pack("<f", 1.5), 1.5),
    (PrimitiveType("timestamp"), struct.pack("<i", -1), datetime(1969, 12, 31)),
    (PrimitiveType("decimal", (38, 2)), b"\x01", Decimal("0.01")),
]

FAR = [(1600, 1, 1), (2300, 1, 1), (9999, 12, 31)]


@pytest.mark.parametrize(("kind", "stored", "value"), EXAMPLES, ids=lambda each: str(each))
def test_a_bound_has_the_value_of_its_bytes(kind, stored, value):
    found = single_values(pa.array([None, stored, None], pa.binary()), kind)
    found.validate(full=True)
    assert found.to_pylist() == [None, value, None]


@pytest.mark.parametrize(("kind", "stored", "value"), PROMOTED, ids=lambda each: str(each))
def test_a_bound_from_before_a_promotion_has_its_value(kind, stored, value):
    assert single_values(pa.array([stored], pa.binary()), kind).to_pylist() == [value]


def test_a_promoted_date_beyond_the_range_of_nanoseconds_is_an_unknown_bound():
    days = [(date(*day) - date(1970, 1, 1)).days for day in FAR]
    stored = pa.array([struct.pack("<i", each) for each in (*days, 0)], pa.binary())
    found = single_values(stored, PrimitiveType("timestamp_ns"))
    assert found.cast(pa.int64()).to_pylist() == [None, None, None, 0]


def test_nanoseconds_are_counted_exactly():
    found = single_values(
        pa.array([struct.pack("<q", -1)], pa.binary()), PrimitiveType("timestamp_ns")
    )
    assert found.cast(pa.int64()).to_pylist() == [-1]


@pytest.mark.parametrize(
    "kind",
    [
        PrimitiveType("int"),
        PrimitiveType("uuid"),
        PrimitiveType("string"),
        PrimitiveType("decimal", (4, 2)),
    ],
    ids=str,
)
def test_bytes_that_no_value_has_are_an_unknown_bound(kind):
    """They do not hide the bounds of other files."""
    good = next(stored for each, stored, _ in EXAMPLES if each.name == kind.name)
    damaged = [b"\xff\xfe\xfd" * 7, good, b"\xff" * 3]
    found = single_values(pa.array(damaged, pa.binary()), kind).to_pylist()
    assert found[0] is None
    assert found[1] is not None


def test_a_slice_is_decoded_like_an_array_of_its_own():
    stored = pa.array([struct.pack("<i", number) for number in range(5)], pa.binary())
    assert single_values(stored.slice(2, 2), PrimitiveType("int")).to_pylist() == [2, 3]
