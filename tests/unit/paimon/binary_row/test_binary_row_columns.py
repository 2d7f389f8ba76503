"""Whole columns and single rows are one format: both codecs agree on every value and every byte."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.paimon.binary_row import (
    FramedRows,
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
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
    atomic,
)
from lakeformat.types.values import values_from_arrow, values_to_arrow

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(max_size=40) | st.text(min_size=1, max_size=3).map(lambda text: text * 33)
NUMBERS = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(1 << 7), (1 << 7) - 1),
    "SMALLINT": st.integers(-(1 << 15), (1 << 15) - 1),
    "INT": st.integers(-(1 << 31), (1 << 31) - 1),
    "BIGINT": INT64,
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "DATE": st.integers(-(1 << 31), (1 << 31) - 1),
    "TIME": st.integers(0, 86_399_999),
    "STRING": TEXT,
    "CHAR(3)": TEXT,
    "BYTES": TEXT.map(str.encode),
    "BINARY(8)": st.binary(min_size=8, max_size=8),
    "VARIANT": st.tuples(st.binary(max_size=9), st.binary(max_size=9)),
}
EXACT = Context(prec=40)
PRECISIONS = (1, 9, 18, 19, 38)


def decimals(data_type: AtomicType) -> st.SearchStrategy[Decimal]:
    limit = 10**data_type.precision - 1
    edges = st.sampled_from(
        [sign * 2**bits + near for bits in range(0, 127, 8) for sign in (1, -1) for near in (-1, 0)]
    )
    unscaled = st.integers(-limit, limit) | edges.filter(lambda number: abs(number) <= limit)
    return unscaled.map(lambda number: Decimal(number).scaleb(-data_type.scale, EXACT))


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    """Any value of a type, null included."""
    return st.none() | present_values(data_type)


def present_values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case ArrayType(element=element):
            return st.lists(values(element), max_size=4)
        case MapType(key=key, value=value):
            return st.lists(st.tuples(present_values(key), values(value)), max_size=3)
        case MultisetType(element=element):
            counts = st.integers(1, 9)
            return st.lists(st.tuples(present_values(element), counts), max_size=3)
        case RowType(fields=fields):
            return st.tuples(*(values(field.type) for field in fields))
        case AtomicType(name=TypeName.DECIMAL):
            return decimals(data_type)
        case AtomicType(name=TypeName.TIMESTAMP | TypeName.TIMESTAMP_LTZ, parameters=(digits,)):
            unit = 1_000_000 if digits <= 3 else 1_000 if digits <= 6 else 1
            return INT64.map(lambda count: count * unit)
    for text, strategy in NUMBERS.items():
        if parse_type(text) == data_type:
            return strategy
    raise AssertionError(data_type)


def row_type(types: list[DataType]) -> RowType:
    return RowType(tuple(DataField(i, f"f{i}", part) for i, part in enumerate(types)))


ATOMIC = st.one_of(
    st.sampled_from(list(NUMBERS)).map(parse_type),
    st.sampled_from(PRECISIONS).map(lambda digits: atomic(TypeName.DECIMAL, digits, digits // 2)),
    st.sampled_from([0, 3, 4, 6, 9]).map(lambda digits: atomic(TypeName.TIMESTAMP, digits)),
    st.sampled_from([3, 6]).map(lambda digits: atomic(TypeName.TIMESTAMP_LTZ, digits)),
)
TYPES = st.recursive(
    ATOMIC,
    lambda part: st.one_of(
        part.map(ArrayType),
        part.map(MultisetType),
        st.builds(MapType, part, part),
        st.lists(part, min_size=1, max_size=3).map(row_type),
    ),
    max_leaves=4,
)


@st.composite
def tables(draw: st.DrawFn, types: st.SearchStrategy[DataType] = TYPES):
    """Types, and rows of them."""
    chosen = draw(st.lists(types, min_size=1, max_size=5))
    rows = st.lists(st.tuples(*map(values, chosen)), max_size=40)
    return chosen, draw(rows)


def columns_of(rows: list[tuple[Any, ...]], types: list[DataType]) -> list[pa.Array]:
    """The rows as slices out of the middle of longer arrays."""
    padded = [rows[0], *rows, rows[0], rows[0]] if rows else rows
    return [
        values_to_arrow([row[i] for row in padded], data_type).slice(1, len(rows))
        for i, data_type in enumerate(types)
    ]


@given(tables())
def test_columns_encode_as_their_rows_do_one_by_one(table):
    types, rows = table
    encoded = encode_columns(columns_of(rows, types), types)
    encoded.validate(full=True)
    assert encoded.to_pylist() == [frame_row(encode_row(row, types), len(types)) for row in rows]
    bare = encode_columns(columns_of(rows, types), types, framed=False)
    assert bare.to_pylist() == [encode_row(row, types) for row in rows]


@given(tables())
def test_framed_rows_decode_as_they_do_one_by_one(table):
    types, rows = table
    framed = [frame_row(encode_row(row, types), len(types)) for row in rows]
    assert [decode_row(unframe_row(row)[1], types) for row in framed] == rows
    array = pa.array([b"before", *framed, b"after"], pa.binary()).slice(1, len(rows))
    for i, (column, data_type) in enumerate(zip(decode_columns(array, types), types, strict=True)):
        column.validate(full=True)
        assert values_from_arrow(column, data_type) == [row[i] for row in rows]


@given(tables(ATOMIC))
def test_columns_hash_as_their_rows_do_one_by_one(table):
    types, rows = table
    hashes = row_hashes(columns_of(rows, types), types)
    assert hashes.tolist() == [hash_row(encode_row(row, types)) for row in rows]


@pytest.mark.parametrize(("arity", "header"), [(56, 8), (57, 16), (120, 16), (121, 24)])
def test_the_header_grows_when_its_null_bits_are_used_up(arity: int, header: int):
    types = [parse_type("INT")] * arity
    values = [None] * (arity - 1) + [1]
    row = encode_row(values, types)
    assert len(row) == header + 8 * arity
    assert decode_row(row, types) == tuple(values)
    columns = [values_to_arrow([value], types[0]) for value in values]
    rows = encode_columns(columns, types)
    assert rows.to_pylist() == [frame_row(row, arity)]
    assert [column.to_pylist() for column in decode_columns(rows, types)] == [[v] for v in values]
    assert row_hashes(columns, types).tolist() == [hash_row(row)]


@given(tables(), st.data())
def test_damaged_rows_are_an_error_or_valid_values_and_never_anything_else(table, data):
    types, rows = table
    rows = rows or [(None,) * len(types)]
    framed = [bytearray(frame_row(encode_row(row, types), len(types))) for row in rows]
    damage(framed, data)
    array = pa.array([bytes(row) for row in framed], pa.binary())
    whole: list[Any] = []
    for position, data_type in enumerate(types):
        try:
            column = FramedRows(array, types).column(position)
        except (CorruptTableError, UnsupportedError):
            continue
        column.validate(full=True)
        whole.append((position, values_from_arrow(column, data_type)))
    for number, row in enumerate(framed):
        try:
            arity, content = unframe_row(bytes(row))
            single = decode_row(content, types)
        except CorruptTableError:
            continue
        if arity == len(types):
            assert all(repr(values[number]) == repr(single[i]) for i, values in whole)


def damage(rows: list[bytearray], data: st.DataObject) -> None:
    """Change some bytes, most often in a row's slots, or cut a row off."""
    for _ in range(data.draw(st.integers(1, 4))):
        row = rows[data.draw(st.integers(0, len(rows) - 1))]
        if data.draw(st.integers(0, 9)) == 0:
            del row[data.draw(st.integers(0, len(row))) :]
        elif row:
            place = data.draw(st.integers(0, min(len(row) - 1, 60)) | st.integers(0, len(row) - 1))
            row[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
