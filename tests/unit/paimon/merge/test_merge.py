"""Merging gives the last row of each key, as a dictionary would."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.rows.row_kinds import is_retract

INTEGER = pa.int64()
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3


def merged(rows, key_type=INTEGER, keys=("k",)) -> list[tuple]:
    """Rows are (key, sequence number, kind, value)."""
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    table = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(columns[1], pa.int64()),
            "_VALUE_KIND": pa.array(columns[2], pa.int8()),
            "k": pa.array(columns[0], key_type),
            "v": pa.array(columns[3], pa.string()),
        }
    )
    result = Deduplicate().merge(table, MergeOrder(tuple(keys)).group(table))
    present = result.filter(pa.array(~is_retract(result["_VALUE_KIND"].to_numpy())))
    return list(zip(*present.select(["k", "v"]).to_pydict().values(), strict=True))


def test_the_highest_sequence_number_wins_wherever_it_stands():
    rows = [(1, 5, INSERT, "new"), (2, 1, INSERT, "b"), (1, 2, INSERT, "old")]
    assert merged(rows) == [(1, "new"), (2, "b")]


def test_among_equal_sequence_numbers_the_later_row_wins():
    assert merged([(1, 3, INSERT, "first"), (1, 3, UPDATE_AFTER, "second")]) == [(1, "second")]


def test_among_equal_sequence_numbers_what_adds_is_newer_than_what_takes_back():
    assert merged([(1, 3, INSERT, "stays"), (1, 3, DELETE, "stays")]) == [(1, "stays")]


@pytest.mark.parametrize("kind", [DELETE, UPDATE_BEFORE])
def test_a_key_whose_last_row_is_a_delete_is_gone(kind):
    assert merged([(1, 1, INSERT, "a"), (1, 2, kind, "a"), (2, 1, INSERT, "b")]) == [(2, "b")]


def test_rows_come_in_key_order_strings_by_their_bytes():
    rows = [(key, 1, INSERT, "v") for key in ("é", "b", "", "Z", "bb")]
    assert [key for key, _ in merged(rows, pa.string())] == ["", "Z", "b", "bb", "é"]


def test_null_keys_are_one_key_and_come_first():
    rows = [(None, 1, INSERT, "a"), (1, 1, INSERT, "b"), (None, 2, INSERT, "c")]
    assert merged(rows) == [(None, "c"), (1, "b")]


def test_negative_zero_is_a_key_of_its_own_and_nan_is_one_key():
    keys = [0.0, -0.0, math.nan, -1.0, math.nan, math.inf]
    rows = [(key, number, INSERT, str(number)) for number, key in enumerate(keys)]
    assert [value for _, value in merged(rows, pa.float64())] == ["3", "1", "0", "5", "4"]


def test_nothing_merges_to_nothing():
    assert merged([]) == []


@given(
    st.lists(
        st.tuples(
            st.integers(-3, 3), st.integers(0, 4), st.sampled_from([0, 1, 2, 3]), st.text("ab")
        )
    )
)
def test_merging_agrees_with_a_dictionary(rows):
    model: dict[int, tuple] = {}
    for key, sequence, kind, value in rows:
        rank = (sequence, kind in (INSERT, UPDATE_AFTER))
        if key not in model or rank >= model[key][0]:
            model[key] = (rank, value)
    alive = {key: value for key, ((_, adds), value) in model.items() if adds}
    assert merged(rows) == sorted(alive.items())
