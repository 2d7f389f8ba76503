"""Rows lie in the bucket that every other writer would have put them in."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.binary_row import encode_row, hash_row
from lakeformat.paimon.bucketing import bucket_function, keeps_buckets, row_hashes
from lakeformat.types.type_text import parse_type
from lakeformat.types.values import values_to_arrow

# From the specification: BIGINT keys, five buckets.
WORKED = {
    -9_000_000_000: (3, 0, 0),
    -7: (2, 3, 1),
    -1: (2, 4, 0),
    0: (4, 0, 0),
    1: (3, 1, 1),
    2: (4, 2, 2),
    3: (0, 3, 3),
    4: (1, 4, 4),
    42: (2, 2, 2),
    9_000_000_000: (4, 0, 0),
    None: (4, 0, 0),
}


def buckets(kind: str, types: list[str], rows: list[tuple[Any, ...]], count: int) -> list[int]:
    parsed = [parse_type(text) for text in types]
    columns = [
        values_to_arrow(list(values), data_type)
        for values, data_type in zip(zip(*rows, strict=True), parsed, strict=True)
    ]
    result = bucket_function(kind, parsed, count)(columns)
    assert result.dtype == np.int32
    return result.tolist()


@pytest.mark.parametrize(("kind", "place"), [("default", 0), ("mod", 1), ("hive", 2)])
def test_the_worked_keys_lie_in_their_buckets(kind: str, place: int):
    found = buckets(kind, ["BIGINT"], [(key,) for key in WORKED], 5)
    assert dict(zip(WORKED, found, strict=True)) == {k: v[place] for k, v in WORKED.items()}


@pytest.mark.parametrize(("kind", "bucket"), [("default", 87), ("hive", 822)])
def test_a_key_of_two_columns_combines_them(kind: str, bucket: int):
    row = ("hé", Decimal("12.50"))
    assert buckets(kind, ["STRING", "DECIMAL(10, 2)"], [row], 1000) == [bucket]


def test_nulls_of_wide_types_keep_their_room_in_the_hash():
    """Without this rule pypaimon puts (null, null) into 5 and (1.00, null) into 6."""
    rows = [
        (None, None),
        (Decimal("1.00"), None),
        (None, 1_700_000_000_123_456_000),
        (Decimal("-1.00"), -1000),
    ]
    assert buckets("default", ["DECIMAL(20, 2)", "TIMESTAMP(6)"], rows, 7) == [6, 2, 6, 3]


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1), st.integers(1, (1 << 31) - 1))
def test_a_bucket_is_the_remainder_of_java_for_any_hash(keys: list[int], count: int):
    types = [parse_type("BIGINT")]
    expected = [abs(hash_row(encode_row([key], types))) % count for key in keys]
    assert buckets("default", ["BIGINT"], [(key,) for key in keys], count) == expected


def test_the_smallest_hash_has_a_bucket_although_it_has_no_absolute_value():
    # Found by search: the row of this INT hashes to -2**31.
    key = 530_389_981
    keys = np.arange(key - 2, key + 3, dtype=np.int32)
    hashes = row_hashes([pa.array(keys)], [parse_type("INT")])
    assert hashes.tolist() == [hash_row(encode_row([int(k)], [parse_type("INT")])) for k in keys]
    smallest = keys[hashes == np.iinfo(np.int32).min]
    assert smallest.tolist() == [key]
    for count in (1, 2, 5, 7, 1000, (1 << 31) - 1):
        assert buckets("default", ["INT"], [(key,)], count) == [2**31 % count]


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1), st.integers(1, (1 << 31) - 1))
def test_mod_is_never_negative(keys: list[int], count: int):
    assert buckets("mod", ["INT"], [(key,) for key in keys], count) == [k % count for k in keys]


def signed(number: int) -> int:
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def java_long_hash(number: int) -> int:
    unsigned = number % (1 << 64)
    return signed((unsigned ^ unsigned >> 32) % (1 << 32))


def java_decimal_hash(value: Decimal) -> int:
    """``BigDecimal.hashCode`` of a value without zeros at the end of its fraction."""
    sign, digits, exponent = value.as_tuple()
    number, scale = int("".join(map(str, digits))), -int(exponent)
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    hashed = 0
    for shift in (96, 64, 32, 0):
        hashed = signed(31 * hashed + (number >> shift & 0xFFFFFFFF))
    return signed(31 * (-hashed if sign else hashed) + scale)


def hive_hash(value: Any, data_type: str) -> int:
    if value is None:
        return 0
    if value != value:
        value = math.nan  # Java has one NaN, where it asks for bits
    if data_type == "DOUBLE":
        return 0 if value == 0 else java_long_hash(struct.unpack("<q", struct.pack("<d", value))[0])
    if data_type == "FLOAT":
        return 0 if value == 0 else struct.unpack("<i", struct.pack("<f", value))[0]
    if data_type == "BIGINT":
        return java_long_hash(value)
    if isinstance(value, Decimal):
        return java_decimal_hash(value)
    if not isinstance(value, str | bytes):
        return int(value)
    hashed = 0
    for byte in value.encode() if isinstance(value, str) else value:
        hashed = signed(31 * hashed + (byte - 256 if byte > 127 else byte))
    return hashed


HIVE = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "INT": st.integers(-(1 << 31), (1 << 31) - 1),
    "DATE": st.integers(-(1 << 31), (1 << 31) - 1),
    "TIME": st.integers(0, 86_399_999),
    "BIGINT": st.integers(-(1 << 63), (1 << 63) - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": st.text(max_size=60) | st.text(min_size=1, max_size=2).map(lambda text: text * 50),
    "BYTES": st.binary(max_size=30),
    "DECIMAL(10, 2)": st.decimals(-99999999, 99999999, places=2),
    "DECIMAL(38, 10)": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda number: Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -10))
    ),
    "DECIMAL(38, 38)": st.sampled_from([Decimal(0), Decimal("0.5"), Decimal("-1e-38")]),
}


@pytest.mark.parametrize("data_type", HIVE)
@given(st.data())
def test_hive_hashes_as_java_does(data_type: str, data: st.DataObject):
    values = data.draw(st.lists(st.none() | HIVE[data_type], min_size=1, max_size=25))
    expected = [hive_hash(value, data_type) % (1 << 31) % 997 for value in values]
    assert buckets("hive", [data_type], [(value,) for value in values], 997) == expected


@pytest.mark.parametrize("data_type", ["FLOAT", "DOUBLE"])
def test_hive_knows_one_zero_and_one_nan_where_the_default_knows_each(data_type: str):
    kind = np.float32 if data_type == "FLOAT" else np.float64
    unsigned = np.uint32 if data_type == "FLOAT" else np.uint64
    nan = np.array([np.nan], kind)
    strange = (nan.view(unsigned) + unsigned(1)).view(kind)
    column = pa.array(np.concatenate([np.array([0.0, -0.0], kind), nan, strange]))
    types = [parse_type(data_type)]
    hive = bucket_function("hive", types, 1 << 30)([column])
    default = bucket_function("default", types, 1 << 30)([column])
    assert hive[0] == hive[1]
    assert hive[2] == hive[3]
    assert len(set(default.tolist())) == 4


def test_hive_combines_columns_in_order_and_wraps_around():
    rows = [("b" * 20, 5), ("a", None), (None, -1)]
    expected = [
        signed(31 * hive_hash(text, "STRING") + hive_hash(number, "INT")) % (1 << 31) % 13
        for text, number in rows
    ]
    assert buckets("hive", ["STRING", "INT"], rows, 13) == expected


def test_more_rows_than_one_piece_of_work_keep_their_order():
    keys = np.arange(100_000)
    types = [parse_type("BIGINT")]
    column = pa.array(keys)
    for kind in ("default", "mod", "hive"):
        function = bucket_function(kind, types, 11)
        whole = function([column])
        parts = [function([column.slice(start, 9999)]) for start in range(0, len(keys), 9999)]
        assert np.array_equal(whole, np.concatenate(parts))
        assert whole[70_001] == function([pa.array([70_001])])[0]


def test_no_rows_have_no_buckets():
    for kind in ("default", "mod", "hive"):
        function = bucket_function(kind, [parse_type("BIGINT")], 5)
        assert function([pa.array([], pa.int64())]).tolist() == []


@pytest.mark.parametrize(
    ("kind", "types", "error", "reason"),
    [
        ("mod", ["STRING"], InvalidRequestError, "one INT or BIGINT column, not STR"),
        ("mod", ["INT", "INT"], InvalidRequestError, "one INT or BIGINT column"),
        ("hive", ["TIMESTAMP(6)"], UnsupportedError, r"no hash for type TIMESTAMP\(6\)"),
        ("hive", ["VARIANT"], UnsupportedError, "no hash for type VARIANT"),
        ("default", ["ARRAY<INT>"], InvalidRequestError, "type ARRAY cannot be in a bucket key"),
        ("default", [], InvalidRequestError, "set 'bucket-key' to one or more columns"),
        ("spark", ["INT"], UnsupportedError, "'spark' is unknown: use default, mod or hive"),
    ],
)
def test_a_key_a_function_is_not_defined_for_is_refused_by_name(kind, types, error, reason):
    with pytest.raises(error, match=reason):
        bucket_function(kind, [parse_type(text) for text in types], 5)


@pytest.mark.parametrize("count", [0, -1, 1 << 31])
def test_a_number_of_buckets_no_table_has_is_refused(count: int):
    with pytest.raises(InvalidRequestError, match="must be from 1 to 2147483647, got"):
        bucket_function("default", [parse_type("INT")], count)


@pytest.mark.parametrize(
    ("kind", "old", "new", "values"),
    [
        ("default", "VARCHAR(5)", "STRING", ["", "a", "hé", "abcde", None]),
        ("hive", "VARCHAR(5)", "VARCHAR(9)", ["", "a", "hé", "abcde", None]),
        ("default", "VARBINARY(5)", "VARBINARY(9)", [b"", b"abcde", None]),
        ("mod", "INT", "BIGINT", [-(2**31), -2, -1, 0, 7, 2**31 - 1, None]),
        ("default", "INT NOT NULL", "INT", [-2, 0, 7]),
        ("default", "CHAR(3)", "VARCHAR(9)", ["abc", "a b", None]),
        ("hive", "CHAR(3)", "STRING", ["abc", "a b", None]),
        ("default", "BINARY(3)", "BYTES", [b"abc", None]),
        ("default", "DECIMAL(5, 2)", "DECIMAL(18, 2)", [Decimal("-1.50"), Decimal(0), None]),
        ("hive", "DECIMAL(5, 2)", "DECIMAL(18, 2)", [Decimal("-1.50"), Decimal("999.99"), None]),
    ],
)
def test_a_type_that_keeps_buckets_keeps_those_of_all_values(kind, old, new, values):
    assert keeps_buckets(kind, parse_type(old), parse_type(new))
    rows = [(value,) for value in values]
    assert buckets(kind, [old], rows, 1000) == buckets(kind, [new], rows, 1000)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("default", "INT", "BIGINT"),
        ("hive", "INT", "BIGINT"),
        ("mod", "BIGINT", "INT"),
        ("default", "STRING", "VARCHAR(5)"),
        ("default", "VARCHAR(5)", "CHAR(9)"),
        ("default", "DECIMAL(18, 2)", "DECIMAL(19, 2)"),
        ("default", "DECIMAL(5, 2)", "DECIMAL(6, 3)"),
        ("default", "TIMESTAMP(3)", "TIMESTAMP(6)"),
        ("default", "INT", "ARRAY<INT>"),
    ],
)
def test_any_other_change_of_type_moves_values(kind, old, new):
    assert not keeps_buckets(kind, parse_type(old), parse_type(new))
