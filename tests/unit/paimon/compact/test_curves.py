"""Bytes that compare like values, Z-order and Hilbert indexes, against bit-by-bit Python."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.paimon.compact.sorting.hilbert import hilbert, hilbert_index
from lakeformat.rows.curves import ordered_bytes, words_of, z_order

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXT_BYTES = 8


def bytes_of(values: list, arrow_type: pa.DataType, text_bytes: int = TEXT_BYTES) -> list[bytes]:
    found = ordered_bytes(pa.array(values, arrow_type), text_bytes)
    return [row.tobytes() for row in found]


def is_rising(rows: list[bytes]) -> bool:
    return all(one < other for one, other in pairwise(rows))


@pytest.mark.parametrize(
    ("arrow_type", "rising"),
    [
        (pa.bool_(), [False, True]),
        (pa.int8(), [-128, -1, 0, 1, 127]),
        (pa.int16(), [-(2**15), -1, 0, 2**15 - 1]),
        (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
        (pa.int64(), [-(2**63), -(2**40), -1, 0, 1, 2**40, 2**63 - 1]),
        (pa.float32(), [-math.inf, -2.5, -1e-30, 0.0, 1e-30, 2.5, math.inf, math.nan]),
        (pa.float64(), [-math.inf, -1e300, -1e-300, 0.0, 1e-300, 1e300, math.inf, math.nan]),
        (pa.decimal128(9, 2), [Decimal("-7.25"), Decimal("-0.01"), Decimal(0), Decimal("3.5")]),
        (pa.decimal128(38, 0), [Decimal(-(10**37)), Decimal(-1), Decimal(0), Decimal(10**30)]),
        (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
        (pa.time32("ms"), [time(0), time(0, 0, 0, 1000), time(23, 59, 59)]),
        (pa.timestamp("us"), [datetime(1, 1, 1), datetime(1970, 1, 1), datetime(2026, 1, 1)]),
        (pa.timestamp("ms", "UTC"), [datetime(1960, 1, 1), datetime(2026, 1, 1)]),
        (pa.string(), ["", "\t", "a", "aa", "b", "ä"]),
        (pa.binary(), [b"", b"\x01", b"\x7f", b"\x80", b"\xff\xff"]),
    ],
)
def test_bytes_compare_like_values_and_null_is_all_zeros(arrow_type, rising):
    found = bytes_of([*rising, None], arrow_type)
    assert is_rising(found[:-1])
    assert found[-1] == bytes(8)


def test_a_slice_of_a_column_has_bytes_of_its_own():
    for column in (pa.array([1, None, 3, 4]), pa.array(["a", None, "c", "d"])):
        whole = ordered_bytes(column, 4)
        assert ordered_bytes(column.slice(1, 2), 4).tolist() == whole[1:3].tolist()
        assert ordered_bytes(column.dictionary_encode(), 4).tolist() == whole.tolist()


@pytest.mark.parametrize(("size", "found"), [(2, b"ab"), (4, b"abc\0"), (12, b"abc" + bytes(9))])
def test_texts_are_cut_off_or_filled_up(size, found):
    assert bytes_of(["abc"], pa.string(), size) == [found]


@given(st.lists(st.floats(), min_size=2, max_size=20))
def test_floats_are_in_the_order_of_ieee_754(values):
    """Positive ones by their bits, negative ones the other way round, before them."""

    def rank(value: float) -> int:
        [bits] = struct.unpack(">Q", struct.pack(">d", value))
        return -(bits - 2**63) - 1 if bits >= 2**63 else bits

    found = bytes_of(values, pa.float64())
    ranks = [rank(value) for value in values]
    order = sorted(range(len(values)), key=lambda at: (found[at], at))
    assert order == sorted(range(len(values)), key=lambda at: (ranks[at], at))


def bits_of(row: bytes) -> list[int]:
    return [byte >> (7 - bit) & 1 for byte in row for bit in range(8)]


def bytes_from(bits: list[int]) -> bytes:
    padded = bits + [0] * (-len(bits) % 8)
    return bytes(int("".join(map(str, padded[at : at + 8])), 2) for at in range(0, len(padded), 8))


def scalar_z_order(columns: list[bytes]) -> bytes:
    """Bit by bit: the first of each column, then the second of each that has one, and so on."""
    left = [bits_of(column) for column in columns]
    found = []
    while any(left):
        found += [column.pop(0) for column in left if column]
    return bytes_from(found)


@given(st.lists(st.tuples(LONGS, st.none() | LONGS, st.none() | st.text(max_size=9)), min_size=1))
def test_z_order_is_that_of_single_bits(rows):
    columns = [
        ordered_bytes(pa.array([row[at] for row in rows], arrow_type), 5)
        for at, arrow_type in enumerate((pa.int64(), pa.int64(), pa.string()))
    ]
    expected = [
        scalar_z_order([column[at].tobytes() for column in columns]) for at in range(len(rows))
    ]
    assert [row.tobytes() for row in z_order(columns)] == expected


@pytest.mark.parametrize("count", [7, 8, 9, 17])
def test_z_order_takes_any_number_of_columns(count):
    columns = [ordered_bytes(pa.array([number * 77, -number]), 8) for number in range(count)]
    expected = [scalar_z_order([column[at].tobytes() for column in columns]) for at in (0, 1)]
    assert [row.tobytes() for row in z_order(columns)] == expected


def test_z_order_of_one_column_is_the_column():
    column = ordered_bytes(pa.array([-5, 0, 7]), 8)
    assert z_order([column]).tolist() == column.tolist()


def scalar_hilbert(point: list[int], bits: int) -> int:
    """Skilling's algorithm for one point."""
    axes, size = [*point], len(point)
    bit = 1 << (bits - 1)
    while bit > 1:
        below = bit - 1
        for at in range(size):
            if axes[at] & bit:
                axes[0] ^= below
            else:
                swapped = (axes[0] ^ axes[at]) & below
                axes[0] ^= swapped
                axes[at] ^= swapped
        bit >>= 1
    for at in range(1, size):
        axes[at] ^= axes[at - 1]
    flipped, bit = 0, 1 << (bits - 1)
    while bit > 1:
        if axes[-1] & bit:
            flipped ^= bit - 1
        bit >>= 1
    axes = [axis ^ flipped for axis in axes]
    index = 0
    for at in reversed(range(bits)):
        for axis in axes:
            index = index << 1 | axis >> at & 1
    return index


@given(st.integers(1, 5), st.data())
def test_the_hilbert_index_is_that_of_single_points(dimensions, data):
    point = st.lists(st.integers(0, 2**63 - 1), min_size=dimensions, max_size=dimensions)
    points = data.draw(st.lists(point, min_size=1, max_size=8))
    found = hilbert_index(np.array(points, np.uint64), 63)
    unused = -dimensions * 63 % 8
    indexes = [int.from_bytes(row.tobytes(), "big") >> unused for row in found]
    assert indexes == [scalar_hilbert(point, 63) for point in points]


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 4), (2, 4), (3, 3), (4, 2)])
def test_a_hilbert_curve_visits_each_point_once_and_moves_one_step_at_a_time(dimensions, bits):
    points = np.array([*product(range(2**bits), repeat=dimensions)], np.uint64)
    indexes = words_of(hilbert_index(points, bits))[:, 0]
    assert len(set(indexes.tolist())) == len(points)
    along = points[np.argsort(indexes)].astype(np.int64)
    assert (np.abs(np.diff(along, axis=0)).sum(axis=1) == 1).all()


def test_a_hilbert_curve_takes_the_first_63_bits_of_each_column():
    columns = [ordered_bytes(pa.array(values), 8) for values in ([-4, None, 9], ["a", "b", None])]
    points = [[int.from_bytes(row.tobytes(), "big") >> 1 for row in column] for column in columns]
    found = [int.from_bytes(row.tobytes(), "big") >> 2 for row in hilbert(columns)]
    assert found == [scalar_hilbert([*point], 63) for point in zip(*points, strict=True)]


def test_many_rows_are_more_than_one_piece():
    rows = (1 << 15) + 3
    column = ordered_bytes(pa.array(range(rows)), 8)
    for curve in (z_order, hilbert):
        whole = curve([column, column[::-1]])
        last = curve([column[-2:], column[::-1][-2:]])
        assert whole[-2:].tolist() == last.tolist()
