"""Changes of golden Iceberg tables lead from each state to every other one.

Java reads no changes of tables with delete files, so the rows of both states are the measure.
Where Java reads changes, they are the same.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, permutations
from typing import Any

import pytest

import lakeformat as lake
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.read.scan import Scan
from tests.conformance.iceberg.test_golden_rows import opened
from tests.golden.iceberg import ICEBERG_TABLES
from tests.golden.iceberg_values import json_rows, sorted_rows
from tests.sampling import count, sample

SIGNS = {"+I": 1, "+U": 1, "-D": -1, "-U": -1}
KINDS_OF_JAVA = {
    "INSERT": "+I",
    "DELETE": "-D",
    "UPDATE_BEFORE": "-U",
    "UPDATE_AFTER": "+U",
}


def table_of(name: str) -> lake.IcebergTable:
    table = lake.open_table(opened(name)[0].location)
    assert isinstance(table, lake.IcebergTable)
    return table


@cache
def state(name: str, snapshot_id: int | None) -> Counter[str]:
    """The rows of a state in the current columns of the table, which changes have as well."""
    _, metadata, places = opened(name)
    snapshot = None if snapshot_id is None else metadata.snapshot(snapshot_id)
    scan = Scan(TableState(places, metadata, snapshot, metadata.schema))
    return Counter(sorted_rows(json_rows(scan.to_arrow(), scan.fields)))


def changes(name: str, *window: int, **options: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """The kinds and the rows of changes, in their order."""
    found = table_of(name).changes(*window, **options).to_arrow()
    rows = json_rows(found.drop_columns("rowkind"), opened(name)[1].schema.fields)
    return found["rowkind"].to_pylist(), rows


def applied(before: Counter[str], kinds: list[str], rows: list[dict[str, Any]]) -> Counter[str]:
    """The rows after all changes; a change of a row that is not there is an error."""
    after = before.copy()
    for kind, row in zip(kinds, rows, strict=True):
        [text] = sorted_rows([row])
        after[text] += SIGNS[kind]
        assert after[text] >= 0, f"{kind} of {text}, which is not a row"
    return +after


def lineage(name: str) -> list[int]:
    """The ids of the main branch, oldest first, after 0 if its beginning has not expired."""
    snapshots = table_of(name).snapshots()
    start = [0] if snapshots[0].snapshot.parent_id is None else []
    return [*start, *(each.snapshot_id for each in snapshots)]


def windows(name: str) -> int:
    return 2 if name == "many_files" else count(3, whole=8)


@pytest.mark.parametrize("name", ICEBERG_TABLES)
def test_changes_of_each_window_lead_from_its_start_to_its_end(name):
    for first, last in sample(combinations(lineage(name), 2), windows(name)):
        found = changes(name, first, last)
        assert applied(state(name, first or None), *found) == state(name, last)


@pytest.mark.parametrize("name", ICEBERG_TABLES)
def test_a_difference_leads_from_any_state_to_any_other(name):
    """Also back, and to a state of another branch; no row is in it twice."""
    ids = [0, *(each.snapshot_id for each in opened(name)[1].snapshots)]
    for first, last in sample(permutations(ids, 2), windows(name)):
        kinds, rows = changes(name, first, last, mode="diff")
        before, after = state(name, first or None), state(name, last or None)
        assert applied(before, kinds, rows) == after
        assert len(rows) == ((before - after) + (after - before)).total()


def of_java(table: Any) -> list[Any]:
    return [each for each in table.expected.get("changelog", ()) if "rows" in each]


JAVA = [
    pytest.param(name, place, id=f"{name}-{place}")
    for name in ("cow_dml", "rewritten", "six_commits", "v1_append", "v3_deletion_vectors")
    for place in range(len(of_java(opened(name)[0])))
]


@pytest.mark.parametrize(("name", "place"), JAVA)
def test_changes_are_those_that_java_reads(name, place):
    expected = of_java(opened(name)[0])[place]
    given = expected.get("args", expected)
    mode = "diff" if given["net_changes"] else "changelog"
    upto = given["end_snapshot_id"] or opened(name)[1].current_snapshot_id
    assert upto is not None
    keys = given["identifier_columns"] if given["compute_updates"] else []
    found = changes(name, given["start_snapshot_id"] or 0, upto, mode=mode, keys=keys)
    rows = [
        {key: value for key, value in row.items() if not key.startswith("_")}
        | {"kind": KINDS_OF_JAVA[row["_change_type"]]}
        for row in expected["rows"]
    ]
    ours = [row | {"kind": kind} for kind, row in zip(*found, strict=True)]
    assert sorted_rows(ours) == sorted_rows(rows)
