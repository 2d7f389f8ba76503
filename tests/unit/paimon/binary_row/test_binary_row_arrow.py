"""Arrow in its many forms: what rows take without changing a value, and what they refuse."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.binary_row import (
    FramedRows,
    decode_columns,
    decode_row,
    encode_columns,
    encode_row,
    frame_row,
    hash_row,
)
from lakeformat.paimon.bucketing import row_hashes
from lakeformat.types.type_text import parse_type
from lakeformat.types.values import Variant, values_from_arrow, values_to_arrow

STRING = parse_type("STRING")
WORDS = ["", None, "seven77", "eight888", "a\0b", "x" * 1000, "é" * 4]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(WORDS, pa.large_string()),
        pa.array(WORDS, pa.string_view()),
        pa.array(WORDS).dictionary_encode(),
        pa.array(["no", *WORDS, "no"], pa.large_string()).slice(1, len(WORDS)),
    ],
    ids=lambda array: str(array.type)[:12],
)
def test_text_is_the_same_in_every_form_arrow_has(array: pa.Array):
    assert encode_columns([array], [STRING]) == encode_columns([pa.array(WORDS)], [STRING])
    assert row_hashes([array], [STRING]).tolist() == [
        hash_row(encode_row([word], [STRING])) for word in WORDS
    ]


def test_bytes_that_arrow_keeps_under_a_null_are_not_part_of_the_row():
    full = pa.array(["hidden and long enough", "shown", "hidden"])
    nulls = pa.py_buffer(np.packbits([0, 1, 0], bitorder="little"))
    array = pa.Array.from_buffers(pa.string(), 3, [nulls, *full.buffers()[1:]])
    numbers = pa.Array.from_buffers(pa.int64(), 3, [nulls, pa.array([7, 8, 9]).buffers()[1]])
    columns, types = [array, numbers], [STRING, parse_type("BIGINT")]
    expected = [encode_row(row, types) for row in [(None, None), ("shown", 8), (None, None)]]
    assert encode_columns(columns, types, framed=False).to_pylist() == expected
    assert row_hashes(columns, types).tolist() == [hash_row(row) for row in expected]


def test_every_bit_of_a_nan_and_of_minus_zero_is_kept():
    patterns = np.array([0x7FC00000, 0xFFC00001, 0x80000000, 0], np.uint32)
    array = pa.array(patterns.view(np.float32))
    rows = encode_columns([array], [parse_type("FLOAT")])
    assert [int.from_bytes(row.as_py()[12:16], "little") for row in rows] == patterns.tolist()
    decoded = FramedRows(rows, [parse_type("FLOAT")]).column(0)
    assert decoded.to_numpy(zero_copy_only=False).view(np.uint32).tolist() == patterns.tolist()


def test_one_value_far_longer_than_the_others_costs_no_more_than_its_length():
    words = ["short", "of medium length", "x" * 300_001] * 2
    expected = [encode_row([word], [STRING]) for word in words]
    rows = encode_columns([pa.array(words)], [STRING], framed=False)
    assert rows.to_pylist() == expected
    assert row_hashes([pa.array(words)], [STRING]).tolist() == [hash_row(row) for row in expected]


def test_many_long_values_are_moved_and_hashed_whole():
    words = ["x" * size for size in range(200)]
    rows = encode_columns([pa.array(words)], [STRING])
    assert FramedRows(rows, [STRING]).column(0).to_pylist() == words
    assert row_hashes([pa.array(words)], [STRING]).tolist() == [
        hash_row(encode_row([word], [STRING])) for word in words
    ]


@pytest.mark.parametrize(
    ("data_type", "array", "values"),
    [
        ("BIGINT", pa.array([1], pa.int8()), [1]),
        ("SMALLINT", pa.array([200], pa.uint8()), [200]),
        ("TIMESTAMP(6)", pa.array([1], pa.timestamp("s")), [1_000_000_000]),
        ("TIMESTAMP(3)", pa.array([-1_000_000], pa.timestamp("ns")), [-1_000_000]),
        ("TIME(0)", pa.array([1_000_000], pa.time64("us")), [1000]),
        ("DATE", pa.array([-86_400_000], pa.date64()), [-1]),
        ("DECIMAL(20, 2)", pa.array([Decimal("1.5")], pa.decimal128(3, 1)), [Decimal("1.50")]),
        ("BINARY(2)", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        ("DOUBLE", pa.array([1.5], pa.float32()), [1.5]),
        ("STRING", pa.nulls(2), [None, None]),
        ("GEOMETRY(OGC:CRS84)", pa.array([b"wkb"]), [b"wkb"]),
        ("BLOB", pa.array([b"123456789"]), [b"123456789"]),
        (
            "VECTOR<INT, 2>",
            pa.array([[9, 9], [1, 2], None], pa.list_(pa.int32(), 2))[1:],
            [[1, 2], None],
        ),
        (
            "MAP<INT, INT>",
            pa.array([[], [(1, 2)]], pa.map_(pa.int32(), pa.int32()))[1:],
            [[(1, 2)]],
        ),
    ],
    ids=str,
)
def test_an_array_of_another_width_or_unit_is_taken_when_every_value_fits(data_type, array, values):
    types = [parse_type(data_type)]
    rows = encode_columns([array], types, framed=False).to_pylist()
    assert [decode_row(row, types)[0] for row in rows] == values
    assert values_from_arrow(array, types[0]) == values


@pytest.mark.parametrize(
    ("data_type", "array"),
    [
        ("INT", pa.array(["5"])),
        ("STRING", pa.array([5])),
        ("INT", pa.array([1.0])),
        ("INT", pa.array([1 << 40])),
        ("TIMESTAMP(3)", pa.array([1], pa.timestamp("us"))),
        ("DECIMAL(3, 0)", pa.array([Decimal("1.5")])),
        ("STRING", pa.array([b"bytes"])),
        ("ARRAY<INT>", pa.array([1])),
        ("ROW<a INT>", pa.array([{"a": 1, "b": 2}])),
        ("INT", pa.chunked_array([[1]])),
        ("TIME(0)", pa.array([1], pa.time64("ns"))),
    ],
    ids=str,
)
def test_an_array_whose_values_would_change_is_refused(data_type, array):
    with pytest.raises(InvalidRequestError, match=r"Arrow array"):
        encode_columns([array], [parse_type(data_type)])


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("INT", 1 << 31),
        ("INT", 1.5),
        ("INT", True),
        ("BOOLEAN", 1),
        ("STRING", b"bytes"),
        ("STRING", "\ud800"),
        ("BYTES", "text"),
        ("TIME", 86_400_000),
        ("TIMESTAMP(3)", 1),
        ("TIMESTAMP(6)", 1001),
        ("DECIMAL(4, 2)", Decimal("92233720368547758.08")),
        ("DECIMAL(4, 2)", Decimal("0.001")),
        ("DECIMAL(38, 0)", Decimal("1e999999")),
        ("DECIMAL(4, 2)", Decimal("NaN")),
        ("DECIMAL(4, 2)", 1.5),
        ("FLOAT", 1e40),
        ("ARRAY<INT>", 5),
        ("MAP<INT, INT>", [1]),
        ("ROW<a INT>", (1, 2)),
        ("VECTOR<INT, 2>", [1]),
        ("VECTOR<STRING, 1>", ["a"]),
        ("VARIANT", b"one part"),
    ],
)
def test_a_value_its_type_cannot_hold_is_refused(data_type, value):
    with pytest.raises(InvalidRequestError):
        encode_row([value], [parse_type(data_type)])
    with pytest.raises(InvalidRequestError):
        values_to_arrow([value], parse_type(data_type))


def test_a_refused_value_is_named_with_its_field():
    with pytest.raises(InvalidRequestError, match="field 1 of a row, TINYINT, cannot hold 300"):
        encode_row(["a", 300], [STRING, parse_type("TINYINT")])


@pytest.mark.parametrize(("low", "high"), [(0, 0), (-1, 1), (-(1 << 62), 1 << 62)])
def test_timestamps_to_the_ends_of_what_arrow_holds_come_back(low: int, high: int):
    ends = np.iinfo(np.int64)
    for unit, digits in (("us", 6), ("ns", 9), ("ms", 3)):
        array = pa.array([low, high, ends.min, ends.max]).cast(pa.timestamp(unit))
        types = [parse_type(f"TIMESTAMP({digits})")]
        assert decode_columns(encode_columns([array], types), types) == [array]


def test_numbers_of_one_column_are_read_without_the_others():
    types = [parse_type("INT"), STRING, parse_type("TIMESTAMP(3)")]
    rows = [frame_row(encode_row(row, types), 3) for row in [(1, "a" * 9, None), (None, "", 10**6)]]
    framed = FramedRows(pa.array(rows), types)
    assert framed.stored_numbers(0).dtype == np.int32
    assert framed.stored_numbers(2).tolist() == [0, 1]
    assert framed.nulls(0).tolist() == [False, True]
    with pytest.raises(InvalidRequestError, match=r"field 1 \(STRING\) has no fixed-width numbers"):
        framed.stored_numbers(1)


def test_a_dict_is_taken_for_a_map_and_comes_back_as_pairs():
    types = [parse_type("MAP<STRING, INT>"), parse_type("VARIANT")]
    row = encode_row([{"a": 1}, (b"v", b"m")], types)
    assert decode_row(row, types) == ([("a", 1)], Variant(b"v", b"m"))


def test_columns_that_make_no_table_are_refused():
    one, two = pa.array([1]), pa.array([1, 2])
    with pytest.raises(InvalidRequestError, match="equal lengths"):
        encode_columns([one, two], [parse_type("BIGINT")] * 2)
    with pytest.raises(InvalidRequestError, match="2 types need 2 columns, got"):
        encode_columns([one], [parse_type("BIGINT")] * 2)
    with pytest.raises(InvalidRequestError, match="without nulls"):
        decode_columns(pa.array([None], pa.binary()), [])
    with pytest.raises(UnsupportedError, match="VECTOR"):
        values_to_arrow([[1]], parse_type("VECTOR<INT, 1>"))
