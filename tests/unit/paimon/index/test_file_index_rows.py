"""Row indexes agree with a look at every row, for each type, operation and size of the parts."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from operator import eq, ge, gt, le, lt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.paimon.index.file_index import (
    IndexType,
    encode_bitmap_index,
    encode_bsi,
    encode_range_bitmap,
    open_column_index,
)
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import BYTES, STRING, RowType, TypeName, atomic

BITMAP, BSI, RANGE = IndexType.BITMAP, IndexType.BSI, IndexType.RANGE_BITMAP
INT = atomic(TypeName.INT)
BIGINT = atomic(TypeName.BIGINT)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan])
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    # The lowest BIGINT has its own test: a bsi cannot hold it.
    return st.one_of(st.integers(-5, 5), st.integers(low + 1, high))


KINDS = {
    atomic(TypeName.BOOLEAN): (st.booleans(), [BITMAP, RANGE]),
    atomic(TypeName.TINYINT): (integers(8), [BITMAP, BSI, RANGE]),
    atomic(TypeName.SMALLINT): (integers(16), [BITMAP, BSI, RANGE]),
    INT: (integers(32), [BITMAP, BSI, RANGE]),
    BIGINT: (integers(64), [BITMAP, BSI, RANGE]),
    atomic(TypeName.DATE): (st.dates(date(1900, 1, 1)), [BITMAP, BSI, RANGE]),
    atomic(TypeName.TIME): (
        st.integers(0, 86_399).map(lambda s: time(s // 3600, s // 60 % 60, s % 60, 5000)),
        [BITMAP, BSI, RANGE],
    ),
    atomic(TypeName.TIMESTAMP, 3): (
        MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
        [BITMAP, BSI, RANGE],
    ),
    atomic(TypeName.TIMESTAMP, 6): (MOMENTS, [BITMAP, BSI, RANGE]),
    atomic(TypeName.TIMESTAMP_LTZ, 6): (
        MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
        [BITMAP, BSI, RANGE],
    ),
    atomic(TypeName.DECIMAL, 10, 2): (
        st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents).scaleb(-2)),
        [BSI, RANGE],
    ),
    atomic(TypeName.FLOAT): (FLOATS, [BITMAP, RANGE]),
    atomic(TypeName.DOUBLE): (FLOATS, [BITMAP, RANGE]),
    STRING: (st.text(max_size=4), [BITMAP, RANGE]),
    atomic(TypeName.CHAR, 3): (st.text("ab", max_size=3), [BITMAP, RANGE]),
}
SIZES = st.sampled_from([0, 1, 17, 40, 200, 16 * 1024])


def encode(index_type, values, data_type, size=16 * 1024, version=2) -> bytes:
    column = pa.array(values, to_arrow_type(data_type))
    if index_type is BITMAP:
        return encode_bitmap_index(column, data_type, version=version, block_size=size)
    if index_type is RANGE:
        return encode_range_bitmap(column, data_type, chunk_size=size)
    return encode_bsi(column, data_type)


def index_of(index_type, values, data_type, **settings):
    body = encode(index_type, values, data_type, **settings)
    return open_column_index(index_type, data_type, body, "index")


def place(value):
    """Sort keys of values: text by its bytes, NaN after every number."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def name_of(parameter) -> str:
    return str(getattr(parameter, "name", parameter))


def rows_where(values, holds, wanted=None) -> list[int]:
    """The rows whose value stands in a relation to the one that is wanted."""
    found = [(row, place(value)) for row, value in enumerate(values) if value is not None]
    return [row for row, value in found if holds(value, wanted)]


@st.composite
def columns(draw):
    """A type, a column of it and some values to ask for, most of which are in it."""
    data_type = draw(st.sampled_from([*KINDS]))
    element, index_types = KINDS[data_type]
    values = draw(st.lists(st.none() | element, max_size=30))
    values *= draw(st.integers(1, 3))
    asked = draw(st.lists(element, min_size=1, max_size=3))
    asked += [value for value in values[:2] if value is not None]
    return data_type, draw(st.sampled_from(index_types)), values, asked


@given(columns(), SIZES, st.sampled_from([1, 2]))
def test_equality_and_nulls_agree_with_a_look_at_every_row(column, size, version):
    data_type, index_type, values, asked = column
    index = index_of(index_type, values, data_type, size=size, version=version)
    places = [place(value) for value in asked]
    nulls = [row for row, value in enumerate(values) if value is None]

    assert [*index.is_null()] == nulls
    assert [*index.is_not_null()] == [row for row in range(len(values)) if row not in nulls]
    assert [*index.one_of(asked)] == rows_where(values, is_in, places)
    for value, wanted in zip(asked, places, strict=True):
        assert [*index.equal_to(value)] == rows_where(values, eq, wanted)


def is_in(value, values) -> bool:
    return value in values


@given(columns(), SIZES)
def test_comparisons_agree_with_a_look_at_every_row(column, size):
    data_type, index_type, values, asked = column
    if index_type is BITMAP:
        return
    index = index_of(index_type, values, data_type, size=size)
    for value in asked:
        wanted = place(value)
        assert [*index.less_than(value)] == rows_where(values, lt, wanted)
        assert [*index.at_most(value)] == rows_where(values, le, wanted)
        assert [*index.greater_than(value)] == rows_where(values, gt, wanted)
        assert [*index.at_least(value)] == rows_where(values, ge, wanted)


@pytest.mark.parametrize("index_type", [BITMAP, BSI, RANGE])
def test_many_values_over_many_parts_are_all_found(index_type):
    values = [(number * 7919) % 20_011 - 10_000 for number in range(20_011)]
    index = index_of(index_type, values, INT, size=300)
    rows = {value: row for row, value in enumerate(values)}
    for value in range(-10_000, 10_011, 997):
        assert [*index.equal_to(value)] == [rows[value]]
    assert [*index.equal_to(10_011)] == []


@pytest.mark.parametrize("index_type", [BITMAP, RANGE])
def test_a_text_longer_than_a_part_has_one_of_its_own(index_type):
    values = ["a", "b" * 100, "c" * 100, "d"]
    index = index_of(index_type, values, STRING, size=50)
    assert [[*index.equal_to(value)] for value in values] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("index_type", [BITMAP, BSI, RANGE])
def test_nothing_equals_or_compares_with_a_null(index_type):
    index = index_of(index_type, [None, 1], INT)
    asked = [index.equal_to(None), index.one_of([None])]
    if index_type is not BITMAP:
        asked += [index.less_than(None), index.at_most(None)]
        asked += [index.greater_than(None), index.at_least(None)]
    assert [*map(len, asked)] == [0] * len(asked)


@pytest.mark.parametrize("index_type", [BITMAP, BSI])
def test_of_nanoseconds_equality_gives_the_rows_that_may_match(index_type):
    nanos = atomic(TypeName.TIMESTAMP, 9)
    column = pa.array([1001, 1999, 2000], pa.timestamp("ns"))
    encode_index = encode_bitmap_index if index_type is BITMAP else encode_bsi
    index = open_column_index(index_type, nanos, encode_index(column, nanos), "index")
    assert [*index.equal_to(column[0])] == [0, 1]


def test_of_nanoseconds_comparisons_leave_no_row_out():
    nanos = atomic(TypeName.TIMESTAMP, 9)
    column = pa.array([1001, 1999, 2000], pa.timestamp("ns"))
    index = open_column_index(BSI, nanos, encode_bsi(column, nanos), "index")
    assert ([*index.less_than(column[1])], [*index.greater_than(column[0])]) == ([0, 1], [0, 1, 2])


@pytest.mark.parametrize("index_type", [BITMAP, RANGE])
def test_the_lowest_bigint_is_a_value_like_others(index_type):
    assert [*index_of(index_type, [-(2**63), 0], BIGINT).equal_to(-(2**63))] == [0]


def test_the_lowest_bigint_is_refused_by_bsi_and_matches_nothing_in_it():
    with pytest.raises(UnsupportedError, match="bsi index cannot hold -9223372036854775808"):
        index_of(BSI, [-(2**63)], BIGINT)
    index = index_of(BSI, [1, -1], BIGINT)
    assert [*index.at_least(-(2**63))] == [0, 1]
    assert [*index.at_most(-(2**63))] == []


def test_every_nan_is_one_value():
    other_nan = pa.array([0x7FF0000000000001, 0x7FF8000000000000], pa.int64()).view(pa.float64())
    double = atomic(TypeName.DOUBLE)
    index = open_column_index(BITMAP, double, encode_bitmap_index(other_nan, double), "index")
    assert [*index.equal_to(math.nan)] == [0, 1]


@pytest.mark.parametrize("index_type", [BITMAP, BSI, RANGE])
def test_a_slice_of_a_column_is_indexed_from_its_own_first_row(index_type):
    data_type = BIGINT if index_type is BITMAP else atomic(TypeName.DECIMAL, 18, 0)
    column = pa.array([Decimal(n) for n in range(10)]).cast(to_arrow_type(data_type)).slice(4, 3)
    writers = {BITMAP: encode_bitmap_index, BSI: encode_bsi, RANGE: encode_range_bitmap}
    body = writers[index_type](column, data_type)
    index = open_column_index(index_type, data_type, body, "index")
    assert [*index.equal_to(5)] == [1]


@pytest.mark.parametrize(
    ("index_type", "data_type"),
    [
        (BITMAP, BYTES),
        (BITMAP, atomic(TypeName.DECIMAL, 10, 2)),
        (BITMAP, RowType(())),
        (BSI, STRING),
        (BSI, atomic(TypeName.DOUBLE)),
        (BSI, atomic(TypeName.BOOLEAN)),
        (RANGE, BYTES),
        (RANGE, atomic(TypeName.DECIMAL, 19, 0)),
        (RANGE, atomic(TypeName.TIMESTAMP, 7)),
    ],
    ids=name_of,
)
def test_a_type_the_index_cannot_hold_is_refused_by_name(index_type, data_type):
    with pytest.raises(UnsupportedError, match=f"a {index_type} index cannot hold"):
        encode(index_type, [], data_type)
    with pytest.raises(UnsupportedError, match=f"a {index_type} index cannot hold"):
        open_column_index(index_type, data_type, b"", "index")


def test_a_decimal_beyond_64_bits_is_refused():
    wide = atomic(TypeName.DECIMAL, 30, 0)
    assert [*index_of(BSI, [Decimal(5)], wide).equal_to(5)] == [0]
    with pytest.raises(UnsupportedError, match="more than 64 bits, and its file index holds"):
        index_of(BSI, [Decimal(2**63)], wide)


@pytest.mark.parametrize("far", [Decimal(2**63), Decimal(2**64 + 5), Decimal(10**29)])
def test_what_no_index_holds_is_a_literal_beyond_all_it_holds(far):
    index = index_of(BSI, [Decimal(5), None, Decimal(-5)], atomic(TypeName.DECIMAL, 30, 0))
    assert [*index.one_of([far, Decimal(-5), -far])] == [2]
    assert [*index.at_most(far)] == [*index.less_than(far)] == [0, 2]
    assert [*index.at_least(-far)] == [*index.greater_than(-far)] == [0, 2]
    assert not index.at_least(far) | index.greater_than(far)
    assert not index.at_most(-far) | index.less_than(-far)


@pytest.mark.parametrize("index_type", [BITMAP, BSI, RANGE])
def test_a_literal_of_another_type_is_refused(index_type):
    with pytest.raises(InvalidRequestError, match="are not all"):
        index_of(index_type, [1], INT).equal_to("one")


def test_a_column_of_another_type_is_refused():
    with pytest.raises(InvalidRequestError, match="are not"):
        encode_bsi(pa.array(["a"]), INT)


def test_a_version_that_does_not_exist_is_refused():
    with pytest.raises(InvalidRequestError, match="version 1 or 2, not 3"):
        encode(BITMAP, [1], INT, version=3)


@pytest.mark.parametrize(("values", "slices"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (256, 8)])
def test_a_range_bitmap_has_as_many_slices_as_its_highest_code_has_bits(values, slices):
    body = encode_range_bitmap(pa.array(range(values), pa.int32()), INT)
    head = int.from_bytes(body[:4], "big")
    dictionary = int.from_bytes(body[head : head + 4], "big")
    after_length_and_version = 4 + head + dictionary + 4 + 1
    assert body[after_length_and_version] == slices
