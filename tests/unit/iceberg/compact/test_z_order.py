"""Z-order positions, against Java's bytes in plain Python, bit by bit."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.compact.z_order import ZOrder, z_bytes, z_order_fields
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.type_json import type_from_json
from lakeformat.iceberg.types import Field, ListType, PrimitiveType
from tests.unit.iceberg.path_table import empty_metadata

SIGN = 1 << 63


def java_number(value: int) -> bytes:
    return (value + SIGN).to_bytes(8, "big")


def java_double(value: float) -> bytes:
    bits = int.from_bytes(struct.pack(">d", math.nan if math.isnan(value) else value), "big")
    return (bits ^ (2**64 - 1 if bits & SIGN else SIGN)).to_bytes(8, "big")


def java_text(value: str, size: int) -> bytes:
    """Whole characters, as Java's encoder stops before one that does not fit."""
    found = b""
    for character in value:
        if len(found) + len(character.encode()) > size:
            break
        found += character.encode()
    return found.ljust(size, b"\0")


def java_interleaved(columns: list[bytes]) -> bytes:
    bits = [[byte >> place & 1 for byte in each for place in range(7, -1, -1)] for each in columns]
    mixed = [each[at] for at in range(max(map(len, bits))) for each in bits if at < len(each)]
    return bytes(int("".join(map(str, mixed[at : at + 8])), 2) for at in range(0, len(mixed), 8))


def bytes_of(kind: str, values: list, size: int = 8) -> list[bytes]:
    field = Field(1, "a", type_from_json(kind))
    found = z_bytes(pa.array(values, to_arrow_type(field.type)), field, size)
    return [row.tobytes() for row in found]


NOON = datetime(2026, 1, 1, 12)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 1)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("int", [-(2**31), -1, 7], [java_number(each) for each in (-(2**31), -1, 7)]),
        ("long", [-(2**63), 2**40], [java_number(each) for each in (-(2**63), 2**40)]),
        ("double", [-math.inf, -0.5, 0.0], [java_double(each) for each in (-math.inf, -0.5, 0)]),
        ("float", [0.1], [java_double(struct.unpack("f", struct.pack("f", 0.1))[0])]),
        ("double", [-math.nan], [bytes.fromhex("fff8000000000000")]),
        ("boolean", [False, True], [bytes(8), b"\x81" + bytes(7)]),
        ("date", [date(1969, 12, 31)], [java_number(-1)]),
        ("time", [time(0, 0, 1)], [java_number(1_000_000)]),
        ("timestamp", [BEFORE_1970], [java_number(-999_999)]),
        ("timestamptz", [BEFORE_1970.replace(tzinfo=UTC)], [java_number(-1)]),
        ("timestamp_ns", [NOON], [java_number(1_767_268_800_000_000)]),
        ("timestamptz_ns", [NOON.replace(tzinfo=UTC)], [java_number(1_767_268_800)]),
        ("decimal(9, 2)", [Decimal("-1.25")], [java_number(-125)]),
        ("binary", [b"\xff", b"123456789"], [b"\xff" + bytes(7), b"12345678"]),
        ("uuid", [UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes], [b"f79c3e09"]),
        ("string", ["ä", "1234567ä", "123456€x", "12345🦆"], None),
    ],
)
def test_a_value_has_the_bytes_that_java_gives_it_and_null_is_zeros(kind, values, expected):
    expected = expected or [java_text(each, 8) for each in values]
    assert bytes_of(kind, [*values, None]) == [*expected, bytes(8)]


def test_texts_have_as_many_bytes_as_asked_for():
    identity = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    for size in (1, 3, 10, 40):
        texts = ["a€🦆ä" * 4, "", "🦆🦆"]
        assert bytes_of("string", texts, size) == [java_text(each, size) for each in texts]
        assert bytes_of("uuid", [UUID(identity).bytes], size) == [java_text(identity, size)]


@pytest.mark.parametrize("most", [None, 3, 8])
def test_rows_are_in_the_order_of_interleaved_bits(most):
    chance = random.Random(3)
    rows = [
        {"a": chance.randrange(-50, 50), "b": chance.choice("äbcdé") * chance.randrange(6)}
        for _ in range(200)
    ]
    fields = (Field(1, "a", PrimitiveType("int")), Field(2, "b", PrimitiveType("string")))
    order = ZOrder(Schema(0, fields), fields, 10, most)

    def java(place: int) -> bytes:
        row = rows[place]
        return java_interleaved([java_number(row["a"]), java_text(row["b"], 10)])[:most]

    table = pa.Table.from_pylist(rows, pa.schema([("a", pa.int32()), ("b", pa.string())]))
    assert order.positions(table).tolist() == sorted(range(len(rows)), key=java)


def test_columns_that_cannot_be_on_a_curve_are_refused_by_name():
    fields = (
        Field(1, "id", PrimitiveType("int")),
        Field(2, "tags", ListType(3, PrimitiveType("int"), element_required=False)),
        Field(4, "shape", PrimitiveType("geometry")),
        Field(5, "p", PrimitiveType("string")),
    )
    spec = PartitionSpec(0, (PartitionField((5,), 1000, "p", "identity"),))
    empty = empty_metadata(version=3)
    metadata = replace(empty, schemas=(Schema(0, fields),), partition_specs=(spec,))
    for name, message in {
        "i": "'i', which is not a column.*such as id, p; did you mean 'id'",
        "bucket(4, id)": "which is not a column",
        "tags": "'tags' of type nested, by which strategy 'zorder' cannot sort",
        "shape": "'shape' of type geometry",
        "p": r"only partition columns \(p\)",
    }.items():
        with pytest.raises(InvalidRequestError, match=message):
            z_order_fields(metadata, [name])
    assert [each.name for each in z_order_fields(metadata, ["p", "id"])] == ["id"]
