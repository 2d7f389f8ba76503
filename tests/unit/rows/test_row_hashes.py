"""Rows of any types have hashes that depend on their values alone, and are paired by them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.rows.paired_rows import paired_rows
from lakeformat.rows.row_hashes import row_hashes

NAN = float("nan")
_STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])

# A type, and values that all differ from each other.
COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    (pa.int32(), [0, 1, -1, 2**31 - 1, None]),
    (pa.int64(), [0, 1, -1, 2**63 - 1, None]),
    (pa.float32(), [0.0, -0.0, 1.5, NAN, None]),
    (pa.float64(), [0.0, -0.0, 1.5, NAN, float("inf"), None]),
    (pa.decimal128(20, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-1.10"), None]),
    (pa.date32(), [date(1970, 1, 1), date(2024, 1, 1), None]),
    (pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, tzinfo=UTC), None]),
    (pa.string(), ["", "a", "b", "ab", "a\0", "12345678", "123456789", "é" * 40, None]),
    (pa.large_string(), ["", "a", None]),
    (pa.binary(), [b"", b"\0", b"\0\0", None]),
    (pa.binary(3), [b"abc", b"abd", None]),
    (pa.null(), [None]),
    (pa.list_(pa.int32()), [[], [0], [0, 0], [1, 2], [2, 1], [None], None]),
    (pa.list_(pa.string()), [["a", "b"], ["ab"], ["ab", ""], None]),
    (pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], [("a", None)], [("b", 1)], None]),
    (_STRUCT, [{"a": 1, "b": ["x"]}, {"a": None, "b": None}, {"a": 1, "b": []}, None]),
    (pa.struct([]), [{}, None]),
]
TYPES = [pytest.param(*each, id=str(each[0])) for each in COLUMNS]


def hashes(*columns: pa.Array) -> list[tuple[int, ...]]:
    return [tuple(row) for row in row_hashes(columns).tolist()]


@pytest.mark.parametrize(("kind", "values"), TYPES)
def test_different_values_have_different_hashes(kind, values):
    assert len(set(hashes(pa.array(values, kind)))) == len(values)


@pytest.mark.parametrize(("kind", "values"), TYPES)
def test_a_value_has_one_hash_in_any_batch(kind, values):
    """Alone, in another order, and in a slice."""
    column = pa.array(values, kind)
    whole = hashes(column)
    assert hashes(pa.array(values[::-1], kind)) == whole[::-1]
    for place, value in enumerate(values):
        assert hashes(pa.array([value], kind)) == whole[place : place + 1]
        assert hashes(column.slice(place)) == whole[place:]


def test_every_nan_is_the_same_value():
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    assert len(set(hashes(pa.array(bits.view(np.float64))))) == 1


def test_values_of_two_columns_do_not_change_places():
    first, second = pa.array(["a", "b"]), pa.array(["b", "a"])
    assert len({*hashes(first, second), *hashes(second, first)}) == 2
    assert hashes(first, second)[0] != hashes(pa.array(["ab"]), pa.array([""]))[0]


def test_long_texts_are_hashed_in_pieces(monkeypatch):
    texts = pa.array(["x" * size for size in range(60)])
    whole = hashes(texts)
    monkeypatch.setattr("lakeformat.rows.row_hashes._MOST_WORDS", 3)
    assert hashes(texts) == whole


def test_no_rows_have_no_hashes():
    for kind, _ in COLUMNS:
        assert row_hashes([pa.array([], kind)]).shape == (0, 2)


def paired(left: list[Any], right: list[Any]) -> tuple[list[bool], list[bool]]:
    kind = pa.int64()
    masks = paired_rows(row_hashes([pa.array(left, kind)]), row_hashes([pa.array(right, kind)]))
    return masks[0].tolist(), masks[1].tolist()


def test_equal_rows_are_paired_once_each():
    assert paired([1, 2, 2, 3], [2, 4, 1]) == ([True, True, False, False], [True, False, True])
    assert paired([5, 5], [5, 5, 5]) == ([True, True], [True, True, False])
    assert paired([None], [None, 0]) == ([True], [True, False])


def test_rows_are_paired_by_both_words_of_their_hash():
    """The same first word alone is no pair, among two rows and among many."""
    words = {1: (7, 1), 2: (7, 2), 3: (8, 3), 4: (8, 4), 5: (8, 5), 6: (9, 1)}

    def masks(left: list[int], right: list[int]) -> tuple[list[bool], ...]:
        sides = [np.array([words[row] for row in side], np.uint64) for side in (left, right)]
        return tuple(mask.tolist() for mask in paired_rows(*sides))

    assert masks([1], [2]) == ([False], [False])
    assert masks([1, 3, 4], [2, 4, 5]) == ([False, False, True], [False, True, False])
    assert masks([3, 3, 6, 1], [6, 3, 4, 1]) == (
        [True, False, True, True],
        [True, True, False, True],
    )


@pytest.mark.parametrize("seed", range(5))
def test_random_rows_are_paired_as_a_count_of_each_says(seed):
    chance = np.random.default_rng(seed)
    sides = [chance.integers(0, 40, size).tolist() for size in chance.integers(0, 60, 2)]
    counts = [Counter(side) for side in sides]
    for side, mask in zip(sides, paired(*sides), strict=True):
        kept = Counter(row for row, is_paired in zip(side, mask, strict=True) if is_paired)
        assert kept == counts[0] & counts[1]


def test_rows_of_one_side_alone_are_not_paired():
    assert paired([1, 1], []) == ([False, False], [])
    assert paired([], [1]) == ([], [False])
