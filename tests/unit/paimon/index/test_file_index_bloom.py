"""Bloom filters: a value that is there is never denied."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.paimon.index.file_index.bloom_filter import (
    BloomFilterWriter,
    encode_bloom_filter,
    read_bloom_filter,
)
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import BYTES, STRING, ArrayType, TypeName, atomic

INT = atomic(TypeName.INT)
FLOAT = atomic(TypeName.FLOAT)
EXAMPLE = bytes.fromhex("00000003 892001504000")
VALUES = {
    STRING: ["", "a", "x" * 100, "中文"],
    atomic(TypeName.CHAR, 5): ["ab   "],
    BYTES: [b"", b"\0\xff", b"0123456789abcdef" * 9],
    atomic(TypeName.BINARY, 3): [b"abc"],
    atomic(TypeName.TINYINT): [-128, 0, 127],
    atomic(TypeName.SMALLINT): [-(2**15), 7],
    INT: [-(2**31), 0, 2**31 - 1],
    atomic(TypeName.BIGINT): [-(2**63), 2**63 - 1],
    FLOAT: [1.5, float("nan"), float("inf"), -2.0],
    atomic(TypeName.DOUBLE): [1e300, 0.1],
    atomic(TypeName.DATE): [date(1969, 12, 31), date(2024, 2, 29)],
    atomic(TypeName.TIME): [time(1, 2, 3, 4000)],
    atomic(TypeName.TIMESTAMP, 3): [datetime(1969, 1, 1, 0, 0, 0, 1000)],
    atomic(TypeName.TIMESTAMP, 6): [datetime(2024, 1, 1, 0, 0, 0, 123456)],
    atomic(TypeName.TIMESTAMP, 9): [datetime(2024, 1, 1, 0, 0, 0, 123456)],
    atomic(TypeName.TIMESTAMP_LTZ, 6): [datetime(2024, 1, 1, tzinfo=UTC)],
}


def name_of(parameter) -> str:
    return str(getattr(parameter, "name", parameter))


def filter_of(values, data_type, **settings):
    column = pa.array(values, to_arrow_type(data_type))
    body = encode_bloom_filter(column, data_type, **settings)
    return read_bloom_filter(body, data_type, "index")


def test_the_bytes_are_the_example_of_the_format():
    column = pa.array([1, 2, 1, None, 3], pa.int32())
    assert encode_bloom_filter(column, INT, items=10, false_positives=0.1) == EXAMPLE


def test_the_example_of_the_format_is_read():
    found = read_bloom_filter(EXAMPLE, INT, "index")
    assert [found.may_contain(value) for value in (1, 2, 3, 5)] == [True, True, True, False]


def test_the_default_size_is_java_s():
    assert len(encode_bloom_filter(pa.array([1], pa.int32()), INT)) == 4 + 599_067


@pytest.mark.parametrize("data_type", VALUES, ids=name_of)
def test_every_value_of_every_type_is_found(data_type):
    found = filter_of([*VALUES[data_type], None], data_type, items=50)
    assert all(found.may_contain(value) for value in VALUES[data_type])


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 100), st.floats(1e-6, 0.9))
def test_no_number_that_is_there_is_denied(values, items, false_positives):
    data_type = atomic(TypeName.BIGINT)
    found = filter_of(values, data_type, items=items, false_positives=false_positives)
    assert all(found.may_contain(value) for value in values)


@given(st.lists(st.lists(st.none() | st.text(max_size=40), max_size=5), max_size=4))
def test_a_filter_made_of_parts_is_that_of_the_whole(parts):
    writer = BloomFilterWriter(STRING, items=9)
    for part in parts:
        writer.add(pa.chunked_array([pa.array(part, pa.string())]))
    whole = pa.array([value for part in parts for value in part], pa.string())
    assert writer.encode() == encode_bloom_filter(whole, STRING, items=9)


def test_few_values_that_are_not_there_are_admitted():
    found = filter_of([f"k{number}" for number in range(2000)], STRING, items=2000)
    admitted = sum(found.may_contain(f"other{number}") for number in range(2000))
    assert admitted < 2000 * 0.1 * 1.5


def test_both_zeros_are_one_value_of_a_predicate():
    found = filter_of([-0.0], FLOAT, items=10)
    assert found.may_contain(0.0)


def test_of_a_null_nothing_is_known():
    assert filter_of([], INT, items=1).may_contain(None)


def test_columns_may_be_chunked_dictionaries_of_another_width():
    column = pa.chunked_array([pa.array(["a"]), pa.array(["b"])]).dictionary_encode()
    plain = encode_bloom_filter(pa.array(["a", "b"], pa.large_string()), STRING, items=5)
    assert encode_bloom_filter(column, STRING, items=5) == plain


def test_timestamps_before_1970_are_hashed_by_floored_microseconds():
    nanos = atomic(TypeName.TIMESTAMP, 9)
    column = pa.array([-1], pa.timestamp("ns"))
    micros = pa.array([-1], pa.timestamp("us"))
    expected = encode_bloom_filter(micros, atomic(TypeName.TIMESTAMP, 6), items=5)
    assert encode_bloom_filter(column, nanos, items=5) == expected


@pytest.mark.parametrize(
    "data_type",
    [atomic(TypeName.BOOLEAN), atomic(TypeName.DECIMAL, 10, 2), ArrayType(STRING)],
    ids=name_of,
)
def test_a_type_that_cannot_be_hashed_is_refused_by_name(data_type):
    column = pa.array([], to_arrow_type(data_type))
    with pytest.raises(
        UnsupportedError, match=r"bloom-filter index cannot hold .*; it accepts BIGI"
    ):
        encode_bloom_filter(column, data_type)


@pytest.mark.parametrize(
    ("items", "false_positives"), [(0, 0.1), (10, 0.0), (10, 1.0), (10, -1.0), (2**40, 0.1)]
)
def test_a_size_that_cannot_be_is_refused(items, false_positives):
    with pytest.raises(InvalidRequestError, match="bloom filter"):
        encode_bloom_filter(pa.array([1]), INT, items=items, false_positives=false_positives)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (INT, 2**31),
        (INT, "a"),
        (INT, 1.5),
        (INT, Decimal("1.5")),
        (FLOAT, 0.1),
        (STRING, 5),
        (STRING, b"a"),
        (atomic(TypeName.DATE), datetime(2024, 1, 1, 12)),
        (atomic(TypeName.TIME), time(1, 2, 3, 4567)),
        (atomic(TypeName.TIMESTAMP, 3), datetime(2024, 1, 1, 0, 0, 0, 1234)),
        (atomic(TypeName.TIMESTAMP_LTZ, 6), datetime(2024, 1, 1)),
    ],
    ids=name_of,
)
def test_a_value_that_the_column_cannot_have_is_refused(data_type, value):
    with pytest.raises(InvalidRequestError, match=r"cast (them|it) to"):
        filter_of([], data_type, items=1).may_contain(value)


@pytest.mark.parametrize(
    "body", [b"", bytes(4), struct.pack(">i", 3), struct.pack(">ii", -1, 0), b"\x7f" * 9]
)
def test_a_filter_without_hash_functions_or_bits_is_damaged(body):
    with pytest.raises(CorruptTableError, match="index is damaged"):
        read_bloom_filter(body, INT, "index")
