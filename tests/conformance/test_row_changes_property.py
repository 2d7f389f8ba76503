"""DELETE, UPDATE, writes and compactions in any order leave what a list of rows would hold.

``EXAMPLES=3000`` tries so many tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.commit.commit import CommitReport
from tests.sampling import count

TABLES = count(5, 20, "EXAMPLES")
_warehouses = itertools.count()
LAYOUTS = {
    "copy": {"bucket": "-1"},
    "marks": {"bucket": "-1", "deletion-vectors.enabled": "true"},
    "wide marks": {
        "bucket": "-1",
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": "true",
    },
    "queue copy": {"bucket": "2", "bucket-key": "k"},
    "queue marks": {"bucket": "2", "bucket-key": "k", "deletion-vectors.enabled": "true"},
}
Row = tuple[str, int | None, int]
"""A partition, a number that may be missing, and how often the row was updated."""

NUMBERS = st.one_of(st.none(), st.integers(0, 9))
ROWS = st.lists(st.tuples(st.sampled_from("ab"), NUMBERS, st.just(0)), min_size=1, max_size=8)


def meets_least(least: int) -> tuple[str, Callable[[Row], bool]]:
    return f"k >= {least}", lambda row: row[1] is not None and row[1] >= least


def meets_one(one: int) -> tuple[str, Callable[[Row], bool]]:
    return f"k = {one} OR n > 1", lambda row: row[1] == one or row[2] > 1


def meets_partition(p: str) -> tuple[str, Callable[[Row], bool]]:
    return f"p = '{p}'", lambda row: row[0] == p


def meets_none(p: str) -> tuple[str, Callable[[Row], bool]]:
    return f"k IS NULL AND p <> '{p}'", lambda row: row[1] is None and row[0] != p


CONDITIONS = st.one_of(
    st.integers(0, 9).map(meets_least),
    st.integers(0, 9).map(meets_one),
    st.sampled_from("ab").map(meets_partition),
    st.sampled_from("ab").map(meets_none),
)
STEPS = st.one_of(
    st.tuples(st.just("write"), ROWS),
    st.tuples(st.just("delete"), CONDITIONS),
    st.tuples(st.just("count up"), CONDITIONS),
    st.tuples(st.just("move"), CONDITIONS),
    st.tuples(st.just("compact"), st.none()),
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_table_holds_what_a_list_holds(layout):
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(max_examples=TABLES, suppress_health_check=slow, print_blob=True, deadline=None)
    @given(ROWS, st.lists(STEPS, min_size=1, max_size=6), st.sampled_from(["parquet", "orc"]))
    def holds(first, steps, file_format):
        table = new_table({**LAYOUTS[layout], "file.format": file_format})
        held: list[Row] = []
        for step in [("write", first), *steps]:
            held = applied(table, held, *step)
            assert content(table) == sorted(held, key=repr)
            assert table.scan().count() == len(held)

    holds()


def applied(table: lake.Table, held: list[Row], step: str, what) -> list[Row]:
    """Do one thing to the table and to the list."""
    if step == "write":
        write(table, what)
        return held + what
    if step == "compact":
        table.compact(executor="serial")
        return held
    where, meets = what
    found = [row for row in held if meets(row)]
    others = [row for row in held if not meets(row)]
    if step == "delete":
        assert table.delete(where).rows == len(found)
        return others
    if step == "count up":
        one_more = {"n": lambda rows: pc.add(rows["n"], pa.scalar(1, pa.int32()))}
        assert table.update(where, one_more).rows == len(found)
        return others + [(p, k, n + 1) for p, k, n in found]
    assert table.update(where, {"p": "a", "k": 3}).rows == len(found)
    return others + [("a", 3, n) for _, _, n in found]


def new_table(options: dict[str, str]) -> lake.Table:
    catalog = lake.open_catalog(f"memory://row-changes-property-{next(_warehouses)}/")
    catalog.create_database("shop")
    columns = [("p", "STRING"), ("k", "INT"), ("n", "INT")]
    return catalog.create_table("shop.t", columns, partition_by=["p"], options=options)


def write(table: lake.Table, rows: list[Row]) -> CommitReport:
    p, k, n = zip(*rows, strict=True)
    return table.write(
        pa.table({"p": list(p), "k": pa.array(k, pa.int32()), "n": pa.array(n, pa.int32())})
    )


def content(table: lake.Table) -> list[Row]:
    found = table.scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)
