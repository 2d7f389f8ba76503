"""Rows are sorted by key and sequence, for all types and widths."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from functools import cmp_to_key
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.rows.key_words import column_words
from lakeformat.rows.word_order import MOST_FALLS, sort_roughly
from tests.sampling import SEED

SMALL = st.integers(-2, 2)
TYPES = {
    "bigint": (pa.int64(), st.one_of(SMALL, st.integers(-(2**63), 2**63 - 1))),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "boolean": (pa.bool_(), st.booleans()),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.one_of(st.sampled_from([0.0, -0.0, math.nan]), st.floats())),
    "decimal": (pa.decimal128(5, 2), st.decimals(-9, 9, places=2)),
    "wide decimal": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    "date": (pa.date32(), st.dates(date(1960, 1, 1), date(2040, 1, 1))),
    "timestamp": (
        pa.timestamp("us"),
        st.datetimes(datetime(1960, 1, 1), datetime(2040, 1, 1)),
    ),
    "text": (pa.string(), st.text(max_size=20)),
    "text of few letters": (pa.string(), st.text("ab\0", max_size=20)),
    "long text with one beginning": (
        pa.string(),
        st.text("xy", max_size=2).map(lambda end: "the same beginning each time " + end),
    ),
    "digits": (pa.string(), st.integers(0, 10**11).map("order-{:012d}".format)),
    "digits and letters": (pa.string(), st.text("0189af", min_size=16, max_size=16)),
    "binary": (pa.binary(), st.binary(max_size=18)),
}


def compared(a, b) -> int:
    """Compare two values of one type in the order of the format; nulls first."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, float):
        a, b = ((math.isnan(x), 0 if math.isnan(x) else x, math.copysign(1, x)) for x in (a, b))
        a, b = ((x[0], x[1], 0 if x[0] else x[2]) for x in (a, b))
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    return (a > b) - (a < b)


def grouped(order: MergeOrder, table: pa.Table, **how) -> list[list[int]]:
    """Positions by key, as the kernel has them."""
    groups = order.group(table, **how)
    ends = zip(groups.starts.tolist(), groups.ends.tolist(), strict=True)
    return [groups.order[start:end].tolist() for start, end in ends]


def expected(rows: list[tuple], sequences: list[tuple]) -> list[list[int]]:
    """The same by comparing row with row: rows of a key by sequence, then position."""

    def compare(a: int, b: int) -> int:
        pairs = zip(rows[a] + sequences[a], rows[b] + sequences[b], strict=True)
        return next((found for x, y in pairs if (found := compared(x, y))), a - b)

    found: list[list[int]] = []
    for position in sorted(range(len(rows)), key=cmp_to_key(compare)):
        if found and not any(map(compared, rows[found[-1][0]], rows[position])):
            found[-1].append(position)
        else:
            found.append([position])
    return found


def table_of(columns: list[tuple[pa.DataType, list]], numbers, kinds=None) -> pa.Table:
    named = {f"k{i}": pa.array(values, kind) for i, (kind, values) in enumerate(columns)}
    system = {
        "_SEQUENCE_NUMBER": pa.array(numbers, pa.int64()),
        "_VALUE_KIND": pa.array(kinds or [0] * len(numbers), pa.int8()),
    }
    return pa.table({**system, **named})


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_keys_of_each_type_come_in_their_order_and_equal_ones_together(name, data):
    kind, values = TYPES[name]
    keys = data.draw(st.lists(st.one_of(st.none(), values), max_size=12))
    keys = pa.array(keys, kind).to_pylist()  # as the type rounds them
    table = table_of([(kind, keys)], range(len(keys)))
    assert grouped(MergeOrder(("k0",)), table) == expected(
        [(key,) for key in keys], [()] * len(keys)
    )


@given(data=st.data())
def test_keys_of_several_columns_compare_one_column_after_the_other(data):
    names = data.draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=2, max_size=3))
    count = data.draw(st.integers(0, 12))
    columns = []
    for name in names:
        kind, values = TYPES[name]
        few = data.draw(st.lists(values, min_size=1, max_size=3))
        drawn = data.draw(st.lists(st.sampled_from(few), min_size=count, max_size=count))
        columns.append((kind, pa.array(drawn, kind).to_pylist()))
    table = table_of(columns, range(count))
    rows = list(zip(*(values for _, values in columns), strict=True)) or []
    order = MergeOrder(tuple(f"k{i}" for i in range(len(names))))
    assert grouped(order, table) == expected(rows, [()] * count)


@given(data=st.data())
def test_keys_of_one_size_are_compared_to_their_last_byte_and_no_further(data):
    size = data.draw(st.integers(0, 20))
    keys = data.draw(st.lists(st.binary(min_size=size, max_size=size), max_size=12))
    similar = st.integers(0, 3).map(lambda last: bytes(size - 1) + bytes([last]) if size else b"")
    keys += data.draw(st.lists(similar, max_size=6))
    table = table_of([(pa.binary(), keys)], range(len(keys)))
    assert grouped(MergeOrder(("k0",)), table) == expected([(k,) for k in keys], [()] * len(keys))


@example(["a", "a\0", "a", "a\0\0", ""])
@given(st.lists(st.text("a\0", max_size=9), max_size=12))
def test_texts_that_end_with_zeros_are_not_the_shorter_ones(keys):
    table = table_of([(pa.string(), keys)], range(len(keys)))
    assert grouped(MergeOrder(("k0",)), table) == expected([(k,) for k in keys], [()] * len(keys))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([0, 1, 2, 3]))))
def test_rows_of_a_key_come_by_number_then_what_takes_back_before_what_adds(rows):
    keys, numbers, kinds = (list(part) for part in zip(*rows, strict=True)) if rows else ([],) * 3
    table = table_of([(pa.int64(), keys)], numbers, kinds)
    sequences = [(number, kind in (0, 2)) for number, kind in zip(numbers, kinds, strict=True)]
    assert grouped(MergeOrder(("k0",)), table) == expected([(key,) for key in keys], sequences)


@pytest.mark.parametrize("descending", [False, True])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.one_of(st.none(), st.integers(-2, 2)),
            st.one_of(st.none(), st.sampled_from(["", "a", "b"])),
            st.integers(0, 2),
        )
    )
)
def test_the_users_sequence_decides_before_the_number_and_null_is_oldest(descending, rows):
    keys, first, second, numbers = map(list, zip(*rows, strict=True)) if rows else ([],) * 4
    table = table_of([(pa.int64(), keys), (pa.int64(), first), (pa.string(), second)], numbers)
    order = MergeOrder(("k0",), ("k1", "k2"), descending)

    def turned(value):
        if value is None or not descending:
            return (value is not None, value)
        number = value if isinstance(value, int) else {"": 0, "a": 1, "b": 2}[value]
        return (True, -number)

    sequences = [
        (*turned(a), *turned(b), number)
        for a, b, number in zip(first, second, numbers, strict=True)
    ]
    assert grouped(order, table) == expected([(key,) for key in keys], sequences)


def test_without_numbers_the_position_decides():
    table = table_of([(pa.int64(), [7, 3, 7])], [9, 9, 1])
    assert grouped(MergeOrder(("k0",)), table, numbered=False) == [[1], [0, 2]]
    assert grouped(MergeOrder(("k0",)), table) == [[1], [2, 0]]


def test_keys_in_several_chunks_are_one_column():
    part = table_of([(pa.string(), ["b", "a"])], [0, 1])
    table = pa.concat_tables([part, part.slice(1), part.slice(0, 1)])
    assert grouped(MergeOrder(("k0",)), table, numbered=False) == [[1, 2], [0, 3]]


def test_numbers_too_wide_to_stand_beside_a_position_are_told_apart_all_the_same():
    keys = [2**62 + n for n in (5, 3, 5, 4)] + [-(2**62)]
    table = table_of([(pa.int64(), keys)], range(5))
    assert grouped(MergeOrder(("k0",)), table) == [[4], [1], [3], [0, 2]]


@pytest.mark.parametrize("runs", [1, 10, MOST_FALLS + 1, MOST_FALLS + 2, 300])
def test_sorted_runs_are_merged_however_many_there_are(runs):
    print(f"SEED={SEED}")
    random = np.random.default_rng(SEED)
    keys = np.sort(random.integers(-(10**6), 10**6, (runs, 40))).ravel()
    table = table_of([(pa.int64(), keys)], range(len(keys)))
    groups = MergeOrder(("k0",)).group(table, numbered=False)
    assert groups.order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert len(groups) == len(np.unique(keys))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50)), max_size=60))
def test_a_rough_order_of_numbers_that_fit_is_their_order(rows):
    places, keys = (pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1))
    words = chain(column_words(places), column_words(keys))

    order = sort_roughly(words, len(rows))

    assert order.tolist() == sorted(range(len(rows)), key=lambda row: rows[row])


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_a_rough_order_keeps_rows_of_a_key_in_theirs(name, data):
    kind, values = TYPES[name]
    few = data.draw(st.lists(values, min_size=1, max_size=4))
    keys = data.draw(st.lists(st.sampled_from(few), max_size=40))

    order = sort_roughly(column_words(pa.array(keys, kind)), len(keys)).tolist()

    assert sorted(order) == [*range(len(keys))]
    for key in few:
        mine = [row for row in order if compared(keys[row], key) == 0]
        assert mine == sorted(mine)


def test_a_rough_order_of_wide_numbers_is_that_of_their_first_bits():
    keys = np.random.default_rng(SEED).integers(-(2**63), 2**63 - 1, 5_000)

    order = sort_roughly(column_words(pa.array(keys)), len(keys))

    kept_bits = 64 - (len(keys) - 1).bit_length()
    first_bits = (keys[order].astype(object) + 2**63) >> (64 - kept_bits)
    assert (first_bits[1:] >= first_bits[:-1]).all()
