"""Merging runs as they stream in gives what merging them at once gives, in little memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.merge import streams
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.merge.streams import merge_runs

ORDER = MergeOrder(("k",))
DEDUPLICATE = Deduplicate()


def batch(keys, numbers, kind=None, kinds=None) -> pa.RecordBatch:
    keys = pa.array(keys, kind or pa.int64())
    return pa.record_batch(
        {
            "_SEQUENCE_NUMBER": pa.array(numbers, pa.int64()),
            "_VALUE_KIND": pa.array(kinds or [0] * len(keys), pa.int8()),
            "k": keys,
        }
    )


def pieces(whole: pa.RecordBatch, sizes: list[int]) -> Iterator[pa.RecordBatch]:
    """A run in batches of these sizes, over and over; a size may be nothing."""
    start = turn = 0
    while start < whole.num_rows:
        size = sizes[turn % len(sizes)] if turn < 50 else whole.num_rows
        yield whole.slice(start, size)
        start, turn = start + size, turn + 1


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(streams, "FEWEST", 3)
    monkeypatch.setattr(streams, "MOST", 3)


def sorted_keys(values):
    return st.lists(values, max_size=14, unique=True).map(sorted)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), st.integers(-20, 20)),
        (pa.string(), st.text("ab\0é", max_size=3)),
        (pa.binary(), st.binary(max_size=2)),
        (pa.timestamp("ns"), st.integers(-20, 20)),
        (pa.date32(), st.integers(-20, 20)),
    ],
)
@given(data=st.data())
@settings(suppress_health_check=[], deadline=None)
def test_streams_merge_as_their_whole_tables_do(kind, values, data):
    wholes = []
    for keys in data.draw(st.lists(sorted_keys(values), min_size=1, max_size=4)):
        kinds = data.draw(st.lists(st.sampled_from([0, 3]), min_size=len(keys), max_size=len(keys)))
        first = 100 * len(wholes)
        wholes.append(batch(keys, range(first, first + len(keys)), kind, kinds))
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    together = pa.Table.from_batches(wholes)
    for numbered in (True, False):
        found = list(
            merge_runs([pieces(w, sizes) for w in wholes], ORDER, DEDUPLICATE, numbered=numbered)
        )
        merged = pa.concat_tables(found) if found else together.slice(0, 0)
        assert merged.equals(DEDUPLICATE.merge(together, ORDER.group(together)))


@pytest.mark.usefixtures("small_batches")
def test_keys_of_several_columns_and_odd_floats_stream_in_their_order():
    order = MergeOrder(("k", "j"))
    runs = []
    for number in range(2):
        floats = [-math.inf, -0.0, 0.0, 1.5, math.nan]
        run = batch([x for x in floats for _ in "ab"], [number] * 10, pa.float64())
        runs.append(pieces(run.append_column("j", pa.array(["a", "b"] * 5)), [2]))
    found = pa.concat_tables(merge_runs(runs, order, DEDUPLICATE))
    assert found.num_rows == 10
    assert set(found["_SEQUENCE_NUMBER"].to_pylist()) == {1}


def test_a_lone_run_passes_through_without_being_copied():
    whole = batch(range(10), range(10))
    [rows] = merge_runs([iter([whole])], ORDER, DEDUPLICATE)
    assert rows["k"].chunk(0).buffers()[1].address == whole["k"].buffers()[1].address


def test_rows_that_meet_no_other_run_pass_through_without_being_copied():
    low, high = batch([1, 2, 3], [0, 1, 2]), batch([10, 11], [3, 4])
    found = list(merge_runs([iter([low]), iter([high])], ORDER, DEDUPLICATE))
    rows = pa.concat_tables(found)
    assert rows["k"].to_pylist() == [1, 2, 3, 10, 11]


@pytest.mark.usefixtures("small_batches")
def test_what_is_held_of_a_run_does_not_grow_with_it():
    held = 0

    def counting(keys: range) -> Iterator[pa.RecordBatch]:
        nonlocal held
        for key in keys:
            held += 1
            yield batch([key], [key])

    runs = [counting(range(0, 2000, 2)), counting(range(1, 2001, 2))]
    for rows in merge_runs(runs, ORDER, DEDUPLICATE):
        held -= rows.num_rows
        assert held <= 8


@pytest.mark.usefixtures("small_batches")
def test_a_run_that_is_not_in_order_is_damage_not_other_rows():
    runs = [iter([batch([1, 5], [0, 1]), batch([4], [2])]), iter([batch([9], [3])])]
    with pytest.raises(CorruptTableError, match=r"key \(4\) after \(5\)"):
        list(merge_runs(runs, ORDER, DEDUPLICATE))


def test_nothing_merges_to_nothing():
    assert list(merge_runs([], ORDER, DEDUPLICATE)) == []
    assert list(merge_runs([iter([]), iter([])], ORDER, DEDUPLICATE)) == []
