"""Texts of partition values are Java's, by which Amoro's records name partitions."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from lakeformat.iceberg.partition_text import partition_text
from lakeformat.iceberg.types import PrimitiveType

MOMENTS = pa.timestamp("us"), pa.timestamp("us", "UTC")
TEXTS = [
    *(("timestamp", MOMENTS[0], *case) for case in (
        (1704103200000000, "2024-01-01T10:00:00"),
        (1704103503500000, "2024-01-01T10:05:03.5"),
        (1704103503000001, "2024-01-01T10:05:03.000001"),
        (-1, "1969-12-31T23:59:59.999999"),
    )),
    ("timestamptz", MOMENTS[1], 1704103200000000, "2024-01-01T10:00:00+00:00"),
    ("timestamptz", MOMENTS[1], 1704103503500000, "2024-01-01T10:05:03.5+00:00"),
    *(("time", pa.time64("us"), *case) for case in (
        (0, "00:00"),
        (36000000000, "10:00"),
        (36000500000, "10:00:00.500"),
        (36001000000, "10:00:01"),
        (36001000001, "10:00:01.000001"),
    )),
    *(("double", pa.float64(), *case) for case in (
        (1e10, "1.0E10"),
        (1.0, "1.0"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (-1.5e-300, "-1.5E-300"),
        (123456.789, "123456.789"),
        (120.0, "120.0"),
    )),
    *(("float", pa.float32(), *case) for case in (
        (0.1, "0.1"),
        (12345678.5, "1.2345678E7"),
        (123456.789, "123456.79"),
        (1e23, "1.0E23"),
        (-math.inf, "-Infinity"),
    )),
]  # fmt: skip
"""Iceberg's type, Arrow's type, the value, and the text of Iceberg 1.12 in Java 17."""


@pytest.mark.parametrize(("name", "kind", "value", "text"), TEXTS)
def test_the_text_of_a_partition_value_is_javas(name, kind, value, text):
    found = pa.array([value], kind)
    assert partition_text("identity", PrimitiveType(name), found) == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [(442_027, "2020-06-04-19"), (70_389_538, "10000-01-01-10"), (70_389_547, "10000-01-01-19")],
)
def test_the_text_of_an_hour_has_all_of_its_digits_in_any_year(hours, text):
    found = pa.array([hours], pa.int32())
    assert partition_text("hour", PrimitiveType("timestamp"), found) == text
