"""The worked examples of the format, byte by byte, for one row and for whole columns."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.binary_row import (
    decode_columns,
    decode_row,
    encode_columns,
    encode_row,
    frame_row,
    hash_row,
    unframe_row,
)
from lakeformat.paimon.bucketing import row_hashes
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataType, VectorType
from lakeformat.types.values import values_from_arrow, values_to_arrow

INSTANT = 1_700_000_000_123_456_789


@dataclass(frozen=True)
class Example:
    types: tuple[str, ...]
    values: tuple[Any, ...]
    framed: str
    hash: int | None = None

    @property
    def data_types(self) -> list[DataType]:
        return [parse_type(text) for text in self.types]

    @property
    def bytes(self) -> bytes:
        return bytes.fromhex(self.framed)

    @property
    def columns(self) -> list[pa.Array]:
        return [column(v, t) for v, t in zip(self.values, self.data_types, strict=True)]

    def __str__(self) -> str:
        return f"{','.join(self.types)}={self.values!r}"[:60]


def one(data_type: str, value: Any, row: str, hashed: int) -> Example:
    """A row of one field; its frame and header are always the same."""
    return Example((data_type,), (value,), f"00000001 0000000000000000 {row}", hashed)


def column(value: Any, data_type: DataType) -> pa.Array:
    if isinstance(data_type, VectorType):
        return pa.array([value], pa.list_(pa.float32(), data_type.length))
    return values_to_arrow([value], data_type)


EXAMPLES = [
    Example((), (), "00000000 0000000000000000", -1670924195),
    one("INT", 1, "0100000000000000", 1465514398),
    Example(("INT",), (None,), "00000001 0001000000000000 0000000000000000", -1748325344),
    one("INT", -1, "ffffffff00000000", 1133687267),
    one("TINYINT", -2, "fe00000000000000", 1831745471),
    one("SMALLINT", -2, "feff000000000000", 557672611),
    one("BIGINT", -5, "fbffffffffffffff", -716660054),
    one("BOOLEAN", True, "0100000000000000", 1465514398),
    one("FLOAT", 1.5, "0000c03f00000000", -173842779),
    one("DOUBLE", -2.25, "00000000000002c0", -413435051),
    one("STRING", "", "0000000000000080", 302122119),
    one("STRING", "abc", "6162630000000083", -101922419),
    one("STRING", "abcdefg", "6162636465666787", -1431907323),
    one("STRING", "abcdefgh", "0800000010000000 6162636465666768", -843760178),
    one("STRING", "abcdefghij", "0a00000010000000 6162636465666768 696a000000000000", 1455944208),
    one("STRING", "hé中", "68c3a9e4b8ad0086", 356161206),
    one(
        "BYTES",
        bytes(range(1, 10)),
        "0900000010000000 0102030405060708 0900000000000000",
        -171399545,
    ),
    one("DECIMAL(10, 2)", Decimal("123.45"), "3930000000000000", 767607022),
    one("DECIMAL(18, 0)", Decimal(-1), "ffffffffffffffff", -821098432),
    one(
        "DECIMAL(20, 2)",
        Decimal("123.45"),
        "0200000010000000 3039000000000000 0000000000000000",
        -118192725,
    ),
    one(
        "DECIMAL(20, 2)",
        Decimal("-123.45"),
        "0200000010000000 cfc7000000000000 0000000000000000",
        -605613085,
    ),
    one(
        "DECIMAL(38, 10)",
        Decimal("1234567890123456789012345678.0123456789"),
        "1000000010000000 0949b0f6f0023313 c449904ecc674515",
        -1782561879,
    ),
    one("DATE", 19000, "384a000000000000", -1241043695),
    one("TIME", 3723004, "fcce380000000000", -867467144),
    one("TIMESTAMP(3)", 1_700_000_000_123_000_000, "7b68e5cf8b010000", -1285420957),
    one("TIMESTAMP(6)", 1_700_000_000_123_456_000, "40f5060010000000 7b68e5cf8b010000", 1196670069),
    one("TIMESTAMP(9)", INSTANT, "55f8060010000000 7b68e5cf8b010000", -71831406),
    one(
        "TIMESTAMP(9) WITH LOCAL TIME ZONE", INSTANT, "55f8060010000000 7b68e5cf8b010000", -71831406
    ),
    one("TIMESTAMP(6)", -1000, "583e0f0010000000 ffffffffffffffff", 1236894319),
    Example(
        ("INT", "STRING", "BIGINT"),
        (7, "hello world", None),
        "00000003 0004000000000000 0700000000000000 0b00000020000000 0000000000000000"
        "68656c6c6f20776f 726c640000000000",
        1266145977,
    ),
    Example(
        ("STRING", "STRING"),
        ("abcdefgh1", "0123456789abcdef"),
        "00000002 0000000000000000 0900000018000000 1000000028000000"
        "6162636465666768 3100000000000000 3031323334353637 3839616263646566",
        1081987834,
    ),
    one(
        "ARRAY<INT>",
        [1, None, 3],
        "1800000010000000 03000000 02000000 01000000 00000000 03000000 00000000",
        1830759751,
    ),
    one(
        "ARRAY<STRING>",
        ["a", "longer than seven", None],
        "3800000010000000 03000000 04000000 6100000000000081 1100000020000000 0000000000000000"
        "6c6f6e6765722074 68616e2073657665 6e00000000000000",
        1538217414,
    ),
    one(
        "ARRAY<BOOLEAN>",
        [True, False, None],
        "1000000010000000 03000000 04000000 01 00 00 0000000000",
        -1053506233,
    ),
    one(
        "ARRAY<TIMESTAMP(6)>",
        [1000, None],
        "2000000010000000 02000000 02000000 e803000018000000 0000000000000000 0000000000000000",
        -1383599345,
    ),
    one(
        "MAP<STRING, INT>",
        [("k1", 10), ("k2", None)],
        "2c00000010000000 18000000 02000000 00000000 6b31000000000082 6b32000000000082"
        "02000000 02000000 0a000000 00000000 00000000",
        -1359791478,
    ),
    one(
        "ROW<a INT, b STRING>",
        (5, "x"),
        "1800000010000000 0000000000000000 0500000000000000 7800000000000081",
        1858064785,
    ),
    one(
        "VECTOR<FLOAT, 3>",
        [1.0, 2.0, 3.0],
        "1400000010000000 03000000 0000803f 00000040 00004040 0000000000000000",
        -1619883983,
    ),
    Example(
        ("INT",) * 57,
        (None,) * 56 + (1,),
        "00000039 00ffffffffffffff 0000000000000000" + "00" * 8 * 56 + "0100000000000000",
        685793678,
    ),
]

# A null of a wide type keeps its room in a row, of which other writers may leave nothing.
NULLS = [
    Example(
        ("DECIMAL(20, 2)",),
        (None,),
        "00000001 0001000000000000 0000000010000000 0000000000000000 0000000000000000",
    ),
    Example(
        ("TIMESTAMP(6)",),
        (None,),
        "00000001 0001000000000000 0000000010000000 0000000000000000",
    ),
    Example(("TIMESTAMP(3)",), (None,), "00000001 0001000000000000 0000000000000000"),
    Example(
        ("ROW<a TIMESTAMP(6)>",),
        ((None,),),
        "00000001 0000000000000000 1800000010000000"
        "0001000000000000 0000000010000000 0000000000000000",
    ),
]

# Not in the specification: forms it describes without bytes.
OTHERS = [
    Example(("ARRAY<INT>",), ([],), "00000001 0000000000000000 0800000010000000 0000000000000000"),
    Example(
        ("MAP<INT, INT>",),
        ([],),
        "00000001 0000000000000000 1400000010000000 08000000 0000000000000000 0000000000000000"
        "00000000",
    ),
    Example(
        ("MULTISET<STRING>",),
        ([("a", 2)],),
        "00000001 0000000000000000 2400000010000000 10000000 01000000 00000000 6100000000000081"
        "01000000 00000000 02000000 00000000 00000000",
    ),
    Example(
        ("VARIANT",),
        ((b"\x0c\x01", b"\x01\x00\x00"),),
        "00000001 0000000000000000 0900000010000000 02000000 0c01 0100 00 00000000000000",
    ),
    Example(("STRING",), ("a\0b",), "00000001 0000000000000000 6100620000000083"),
    Example(
        ("DECIMAL(20, 0)", "DECIMAL(20, 0)"),
        (Decimal(128), Decimal(-128)),
        "00000002 0000000000000000 0200000018000000 0100000028000000"
        "0080000000000000 0000000000000000 8000000000000000 0000000000000000",
    ),
]
ALL = [*EXAMPLES, *NULLS, *OTHERS]
COLUMNS = [example for example in ALL if example.types]
each = pytest.mark.parametrize("example", ALL, ids=str)
each_with_columns = pytest.mark.parametrize("example", COLUMNS, ids=str)


@each
def test_a_row_encodes_to_the_bytes_of_the_specification(example: Example):
    row = encode_row(example.values, example.data_types)
    assert frame_row(row, len(example.types)).hex(" ") == example.bytes.hex(" ")


@each
def test_a_row_decodes_to_its_values(example: Example):
    arity, row = unframe_row(example.bytes)
    assert (arity, decode_row(row, example.data_types)) == (len(example.types), example.values)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_the_hash_of_a_row_is_that_of_the_specification(example: Example):
    assert hash_row(unframe_row(example.bytes)[1]) == example.hash


@each_with_columns
def test_columns_encode_to_the_same_bytes(example: Example):
    rows = encode_columns(example.columns, example.data_types)
    assert [row.hex(" ") for row in rows.to_pylist()] == [example.bytes.hex(" ")]


@each_with_columns
def test_columns_hash_without_being_encoded(example: Example):
    expected = hash_row(unframe_row(example.bytes)[1])
    assert row_hashes(example.columns, example.data_types).tolist() == [expected]


@each_with_columns
def test_framed_rows_decode_to_columns(example: Example):
    rows = pa.array([example.bytes] * 3)
    if example.types[0].startswith("VECTOR"):
        with pytest.raises(UnsupportedError, match="VECTOR"):
            decode_columns(rows, example.data_types)
        return
    for array, value, data_type in zip(
        decode_columns(rows, example.data_types), example.values, example.data_types, strict=True
    ):
        array.validate(full=True)
        assert values_from_arrow(array, data_type) == [value] * 3


def test_a_wide_null_of_another_writer_that_keeps_no_room_is_read_as_null():
    types = [parse_type("TIMESTAMP(6)"), parse_type("DECIMAL(20, 2)")]
    row = bytes.fromhex("0003000000000000 0000000000000000 0000000000000000")
    assert decode_row(row, types) == (None, None)
    assert [c.to_pylist() for c in decode_columns(pa.array([frame_row(row, 2)]), types)] == [
        [None],
        [None],
    ]


def test_a_decimal_that_another_writer_keeps_in_a_byte_too_many_is_read():
    # pypaimon writes -128, and every negative power of 256 halved, as ff80; Java as 80.
    types = [parse_type("DECIMAL(20, 0)")]
    row = bytes.fromhex("0000000000000000 0200000010000000 ff80000000000000 0000000000000000")
    assert decode_row(row, types) == (Decimal(-128),)
    assert decode_columns(pa.array([frame_row(row, 1)]), types)[0].to_pylist() == [Decimal(-128)]
