"""The changelog of a key by the levels of its rows: the tables of the format."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.compact.changelogs.changelog import ChangelogMerge, Unchanged
from lakeformat.paimon.compact.changelogs.first_row import FirstRowMerge
from lakeformat.paimon.compact.changelogs.full import FullChangelogMerge
from lakeformat.paimon.compact.changelogs.lookup import LookupMerge
from lakeformat.paimon.merge.aggregation import Aggregation
from lakeformat.paimon.merge.deduplicate import Deduplicate
from lakeformat.paimon.merge.engine import MergeEngine
from lakeformat.paimon.merge.first_row import FirstRow
from lakeformat.paimon.merge.functions.registry import aggregate_function, kept_key
from lakeformat.paimon.merge.looked_up import LEVEL, LookedUp, current_rows
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.options import TableOptions
from lakeformat.types.types import DataField, TypeName, atomic

KINDS = ["+I", "-U", "+U", "-D"]
ORDER = MergeOrder(("k",))
SCHEMA = pa.schema(
    [
        ("_SEQUENCE_NUMBER", pa.int64()),
        ("_VALUE_KIND", pa.int8()),
        ("k", pa.int64()),
        ("v", pa.int64()),
        (LEVEL, pa.int8()),
    ]
)


def table(text: str) -> pa.Table:
    """Rows such as ``L0 +I 1 10``: level, kind, key, value; older rows first."""
    rows = [line.split() for line in text.strip().splitlines()]
    columns = [
        list(range(len(rows))),
        [KINDS.index(kind) for _, kind, _, _ in rows],
        [int(key) for _, _, key, _ in rows],
        [int(value) for _, _, _, value in rows],
        [int(level[1:]) for level, _, _, _ in rows],
    ]
    return pa.table(columns, schema=SCHEMA)


def text(rows: pa.Table) -> str:
    values = zip(*(rows[name].to_pylist() for name in ("_VALUE_KIND", "k", "v")), strict=True)
    return ", ".join(f"{KINDS[kind]} {key} {value}" for kind, key, value in values)


def merged(merge: ChangelogMerge, rows: str) -> tuple[str, str]:
    """The written rows, and the changelog."""
    found = table(rows)
    result = merge.merge(found, ORDER.group(found))
    return text(result.rows), text(result.changelog)


def summing() -> Aggregation:
    field = DataField(1, "v", atomic(TypeName.BIGINT))
    functions = {"k": kept_key("k"), "v": aggregate_function("sum", field, TableOptions({}))}
    return Aggregation(("k",), functions)


LOOKUP: Mapping[str, tuple[MergeEngine, str, str, str]] = {
    "a new key": (Deduplicate(), "L0 +I 1 10", "+I 1 10", "+I 1 10"),
    "a new key, written twice": (Deduplicate(), "L0 +I 1 1\nL0 +U 1 2", "+U 1 2", "+I 1 2"),
    "a deleted key that was not there": (Deduplicate(), "L0 -D 1 1", "-D 1 1", ""),
    "inserted and deleted at once": (Deduplicate(), "L0 +I 1 1\nL0 -D 1 1", "-D 1 1", ""),
    "an update": (Deduplicate(), "L3 +I 1 10\nL0 +I 1 20", "+I 1 20", "-U 1 10, +U 1 20"),
    "an update of nothing": (Deduplicate(), "L3 +I 1 1\nL0 +I 1 1", "+I 1 1", "-U 1 1, +U 1 1"),
    "a delete": (Deduplicate(), "L3 +I 1 10\nL0 -D 1 0", "-D 1 0", "-D 1 10"),
    "after a delete": (Deduplicate(), "L3 -D 1 10\nL0 +I 1 5", "+I 1 5", "+I 1 5"),
    "nothing of level 0": (Deduplicate(), "L3 +I 1 10\nL4 +I 2 20", "+I 1 10, +I 2 20", ""),
    "superseded rows": (summing(), "L5 +I 1 1\nL4 +I 1 3\nL0 +I 1 5", "+I 1 8", "-U 1 3, +U 1 8"),
    "rows above the output": (summing(), "L9 +I 1 1\nL0 +I 1 5", "+I 1 6", "-U 1 1, +U 1 6"),
    "keys above the output only": (summing(), "L9 +I 1 1\nL0 +I 2 5", "+I 2 5", "+I 2 5"),
    "a lone retract": (summing(), "L0 -D 1 4", "+I 1 -4", "+I 1 -4"),
    "several keys": (
        Deduplicate(),
        "L2 +I 1 1\nL2 +I 2 2\nL2 +I 4 4\nL0 -D 2 0\nL0 +I 3 3\nL0 +U 4 5",
        "+I 1 1, -D 2 0, +I 3 3, +U 4 5",
        "-D 2 2, +I 3 3, -U 4 4, +U 4 5",
    ),
}


@pytest.mark.parametrize("case", LOOKUP)
def test_lookup_tells_of_keys_with_rows_of_level_0(case: str):
    engine, rows, written, told = LOOKUP[case]
    assert merged(LookupMerge(engine, 5), rows) == (written, told)


FULL = {
    "a new key": ("L0 +I 1 10", "+I 1 10", "+I 1 10"),
    "a new key of a level between": ("L3 +U 1 10", "+U 1 10", "+I 1 10"),
    "a deleted key that was not there": ("L0 -D 1 1", "-D 1 1", ""),
    "nothing new": ("L5 +I 1 10", "+I 1 10", ""),
    "an update over two levels": ("L5 +I 1 1\nL3 +I 1 2\nL0 +I 1 3", "+I 1 3", "-U 1 1, +U 1 3"),
    "a delete": ("L5 +I 1 1\nL0 -D 1 1", "-D 1 1", "-D 1 1"),
    "inserted and deleted between": ("L3 +I 1 1\nL0 -D 1 1", "-D 1 1", ""),
}


@pytest.mark.parametrize("case", FULL)
def test_full_compaction_tells_what_differs_from_the_highest_level(case: str):
    rows, written, told = FULL[case]
    assert merged(FullChangelogMerge(Deduplicate(), 5), rows) == (written, told)


FIRST = {
    "a new key": ("L0 +I 1 1\nL0 +I 1 2", "+I 1 1", "+I 1 1"),
    "a key it had": ("L3 +I 1 1\nL0 +I 1 2", "+I 1 1", ""),
    "a key above the output": ("L6 +I 1 1\nL0 +I 1 2\nL0 +I 2 2", "+I 2 2", "+I 2 2"),
    "an update that came first": ("L0 +U 1 1", "+U 1 1", "+I 1 1"),
    "only looked up": ("L6 +I 1 1\nL6 +I 2 2", "", ""),
}


@pytest.mark.parametrize("case", FIRST)
def test_first_rows_are_told_once(case: str):
    rows, written, told = FIRST[case]
    assert merged(FirstRowMerge(FirstRow(("k",)), 5), rows) == (written, told)


def test_a_delete_of_a_first_row_is_refused_even_alone():
    with pytest.raises(InvalidRequestError, match=r"k = 1.*ignore-delete"):
        merged(FirstRowMerge(FirstRow(("k",)), 5), "L0 -D 1 1")


@pytest.mark.parametrize("merge", ["lookup", "full"])
def test_deletes_that_are_ignored_are_not_told(merge: str):
    engine = Deduplicate(ignore_delete=True)
    each = LookupMerge(engine, 5) if merge == "lookup" else FullChangelogMerge(engine, 5)
    written, told = merged(each, "L0 +I 1 1\nL0 -D 1 1\nL0 -D 2 2\nL0 -D 2 2")
    assert (written, told) == ("+I 1 1", "+I 1 1")


def test_row_deduplicate_leaves_out_updates_of_nothing_else():
    rows = "L5 +I 1 1\nL5 +I 2 2\nL0 +I 1 1\nL0 +I 2 3"
    told = merged(LookupMerge(Deduplicate(), 5, Unchanged(("v",))), rows)[1]
    assert told == "-U 2 2, +U 2 3"
    assert merged(FullChangelogMerge(Deduplicate(), 5, Unchanged(("v",))), rows)[1] == told


def test_what_was_looked_up_and_is_replaced_is_named_for_the_deletion_vectors():
    rows = table("L6 +I 1 1\nL7 +I 2 2\nL5 +I 3 3\nL0 +I 1 5\nL0 -D 2 0\nL0 +I 3 4\nL6 +I 4 4")
    found = LookupMerge(Deduplicate(), 5, makes_changelog=False).merge(rows, ORDER.group(rows))
    assert found.superseded is not None
    assert found.superseded.tolist() == [0, 1]
    assert found.changelog.num_rows == 0


def test_rows_that_meet_nobody_are_merged_without_being_sorted():
    rows = table("L5 +I 1 1\nL0 -D 2 2\nL6 +I 3 3\nL0 +I 4 4")
    found = LookupMerge(Deduplicate(), 5).merge(rows, None)
    assert (text(found.rows), text(found.changelog)) == ("+I 1 1, -D 2 2, +I 4 4", "+I 4 4")


def test_a_read_counts_a_row_once_that_several_levels_have():
    rows = table("L5 +I 1 1\nL4 +I 1 3\nL0 +I 1 5\nL5 +I 2 2")
    found = LookedUp(summing()).merge(rows, ORDER.group(rows))
    assert text(found) == "+I 1 8, +I 2 2"
    assert LEVEL not in found.column_names


def test_the_row_of_the_lowest_level_is_the_current_one():
    rows = table("L5 +I 1 1\nL4 +I 1 3\nL2 +I 1 4\nL0 +I 1 5\nL3 +I 2 2\nL0 +I 3 3")
    found = current_rows(ORDER.group(rows), rows[LEVEL].to_numpy())
    assert found.compacted.tolist() == [2, 4, -1]
    assert found.is_fresh.tolist() == [True, False, True]
    assert found.groups.order.tolist() == [2, 3, 4, 5]
    assert np.array_equal(found.groups.starts, [0, 2, 3])
