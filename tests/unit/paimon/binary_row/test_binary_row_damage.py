"""Damaged rows are named; nothing outside of them is read, and nothing large is made of them."""

from __future__ import annotations

import struct
import tracemalloc
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.paimon.binary_row import (
    decode_columns,
    decode_row,
    encode_row,
    frame_row,
    unframe_row,
)
from lakeformat.types.type_text import parse_type

HEADER = "0000000000000000"


def framed(row: str, arity: int = 1) -> bytes:
    return frame_row(bytes.fromhex(row), arity)


# A field's type, a row that holds no value of it, and what is said of many such rows.
DAMAGED = [
    ("STRING", f"{HEADER} 0000000000000088", "larger than its slot"),
    ("STRING", f"{HEADER} 0100000011000000", "outside of the row's variable-length part"),
    (
        "STRING",
        f"{HEADER} 0900000010000000 6162636465666768",
        "outside of the row's variable-length part",
    ),
    (
        "STRING",
        f"{HEADER} ffffffff10000000 6162636465666768",
        "outside of the row's variable-length part",
    ),
    (
        "STRING",
        f"{HEADER} 08000000ffffff7f 6162636465666768",
        "outside of the row's variable-length part",
    ),
    (
        "STRING",
        f"{HEADER} 0800000008000000 6162636465666768",
        "outside of the row's variable-length part",
    ),
    ("STRING", f"{HEADER} ff00000000000081", "not UTF-8"),
    ("STRING", f"{HEADER} 0800000010000000 61626364656667ff", "not UTF-8"),
    ("TIME", f"{HEADER} 005c260500000000", "not a time between 0:00 and 24:00"),
    ("TIME", f"{HEADER} ffffffff00000000", "not a time between 0:00 and 24:00"),
    ("DECIMAL(19, 0)", f"{HEADER} 0000000010000000 {'00' * 16}", "a size other than 1 to 16 bytes"),
    ("DECIMAL(19, 0)", f"{HEADER} 1100000010000000 {'00' * 16}", "a size other than 1 to 16 bytes"),
    (
        "DECIMAL(19, 0)",
        f"{HEADER} 1000000010000000 {'7f' * 16}",
        "a number with more digits than its type allows",
    ),
    (
        "DECIMAL(19, 0)",
        f"{HEADER} 0100000010000000 {'01' * 8}",
        "outside of the row's variable-length part",
    ),
    (
        "TIMESTAMP(6)",
        f"{HEADER} 40420f0010000000 {HEADER}",
        "more than 999999 ns after its millisecond",
    ),
    (
        "TIMESTAMP(6)",
        f"{HEADER} 0000000018000000 {HEADER}",
        "outside of the row's variable-length part",
    ),
    ("TIMESTAMP(6)", f"{HEADER} 0000000000000000", "outside of the row's variable-length part"),
    ("ARRAY<INT>", f"{HEADER} 0800000010000000 ffffff7f00000000", "2147483647 elements"),
    ("ARRAY<INT>", f"{HEADER} 0800000010000000 ffffffff00000000", "-1 elements"),
    ("ARRAY<INT>", f"{HEADER} 0300000010000000 0000000000000000", "unpack_from"),
    ("MAP<INT, INT>", f"{HEADER} 0800000010000000 0500000000000000", "cannot hold keys of 5 bytes"),
    (
        "MAP<INT, INT>",
        f"{HEADER} 1c00000010000000 10000000 01000000 00000000 0100000000000000 0000000000000000",
        "1 keys and 0 values",
    ),
    ("ROW<a INT>", f"{HEADER} 0800000010000000 {HEADER}", "its fixed part needs 16"),
    ("VARIANT", f"{HEADER} 0800000010000000 0500000000000000", "cannot hold a value of 5 bytes"),
]


@pytest.mark.parametrize(("data_type", "row", "reason"), DAMAGED)
def test_a_damaged_value_is_named_with_its_row_and_field(data_type, row, reason):
    types = [parse_type(data_type)]
    good = frame_row(encode_row([None], types), 1)
    with pytest.raises(CorruptTableError, match=reason) as caught:
        decode_columns(pa.array([good, good, framed(row), good]), types)
    assert "row 2" in str(caught.value)
    assert "field 0" in str(caught.value)
    with pytest.raises(CorruptTableError, match="field 0 of a row"):
        decode_row(bytes.fromhex(row), types)


@pytest.mark.parametrize(("data_type", "row", "reason"), DAMAGED)
def test_what_lies_under_a_null_is_not_looked_at(data_type, row, reason):
    types = [parse_type(data_type)]
    hidden = bytes.fromhex("0001" + row.replace(" ", "")[4:])
    assert decode_row(hidden, types) == (None,)
    assert decode_columns(pa.array([frame_row(hidden, 1)]), types)[0].to_pylist() == [None]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"", "shorter than the field count at its start, which takes 4 bytes"),
        (b"\0\0\0", "shorter than the field count at its start, which takes 4 bytes"),
        (framed(HEADER * 3, arity=2), "not of 1 fields"),
        (b"\x01\0\0\0" + bytes(16), "not of 1 fields"),
        (framed(HEADER), "shorter than 20 bytes"),
    ],
)
def test_a_frame_that_does_not_fit_its_row_is_refused(row, reason):
    good = framed(HEADER * 2)
    with pytest.raises(
        CorruptTableError, match=f"row 1 of 2, counted from 0, is damaged: {reason}"
    ):
        decode_columns(pa.array([good, row]), [parse_type("INT")])


@pytest.mark.parametrize("row", [b"", b"\0\0\0", b"\xff\xff\xff\xff", framed(HEADER, 1)])
def test_bytes_that_are_no_framed_row_are_refused(row):
    with pytest.raises(CorruptTableError, match="cannot be a binary row of"):
        unframe_row(row)


def test_a_row_without_room_for_its_fields_is_refused():
    with pytest.raises(CorruptTableError, match="its fixed part needs 16"):
        decode_row(bytes(8), [parse_type("INT")])


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (struct.pack("<4i", 3, 1, 2, 3), "a VECTOR has 3 elements instead of 2"),
        (struct.pack("<2i", 2, 1), "a VECTOR of 2 elements needs 12 bytes, but has 8"),
    ],
)
def test_a_vector_of_another_length_is_refused(item, reason):
    row = bytes(8) + struct.pack("<II", len(item), 16) + item
    with pytest.raises(CorruptTableError, match=reason):
        decode_row(row, [parse_type("VECTOR<INT, 2>")])


def test_values_that_share_their_bytes_do_not_grow_beyond_the_row():
    """Every element of a list refers to one list: 1,000 bytes would make a million numbers."""
    count, start = 32, 264
    item = struct.pack("<ii", count, 0) + bytes(4 * count)
    for _ in range(3):
        slots = struct.pack("<II", len(item), start) * count
        item = struct.pack("<ii", count, 0) + slots + item
    row = bytes(8) + struct.pack("<II", len(item), 16) + item
    types = [parse_type("ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>")]
    tracemalloc.start()
    try:
        with pytest.raises(CorruptTableError, match="is outside of the variable-length part"):
            decode_row(row, types)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("year", [1, 9999])
def test_a_timestamp_that_arrow_cannot_hold_is_refused_and_not_wrapped_around(year: int):
    types = [parse_type("TIMESTAMP(9)")]
    nanos = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    row = encode_row([nanos], types)
    assert decode_row(row, types) == (nanos,)
    with pytest.raises(
        UnsupportedError,
        match=r"row 0 of 1, counted from 0: the value of field 0 .* does not fit timestamp\[ns\]",
    ):
        decode_columns(pa.array([frame_row(row, 1)]), types)


def test_a_damaged_column_does_not_hide_the_others():
    types = [parse_type("STRING"), parse_type("DECIMAL(20, 0)")]
    row = bytearray(frame_row(encode_row(["abcdefgh", Decimal(1)], types), 2))
    row[12] = 0xFF
    array = pa.array([bytes(row)])
    with pytest.raises(CorruptTableError, match=r"field 0 \(STRING\)"):
        decode_columns(array, types)
