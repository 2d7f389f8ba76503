"""Moves of rows to another bucket or partition die at every storage call: no row is lost or twice.

Writes of tables with dynamic buckets are in ``test_keyed_writes.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import sampled_states

LAYOUT = TableLayout("wh/shop.db/orders")
POSTPONED: dict[str, Any] = {"options": {"bucket": "-2", "postpone.default-bucket-num": "2"}}
FIXED: dict[str, Any] = {"options": {"bucket": "2"}}
CROSSING: dict[str, Any] = {"options": {"bucket": "-1"}, "partition_by": ["note"]}
EXPECTED = {1: "b", 2: "a", 3: "b"}


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(len(storage.files()) + 1))


def filled(table: dict[str, Any]) -> CrashableStorage:
    """Two commits of keys that meet."""
    storage = CrashableStorage()
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("note", "STRING")]
    catalog.create_table("shop.orders", columns, primary_key=["id"], **table)
    opened(storage).write(pa.table({"id": [1, 2], "note": ["a", "a"]}))
    opened(storage).write(pa.table({"id": [1, 3], "note": ["b", "b"]}))
    return storage


def content(storage) -> dict[int, str]:
    rows = opened(storage).scan().to_arrow().to_pylist()
    found = {row["id"]: row["note"] for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def compact(storage, acknowledged) -> None:
    acknowledged.append(opened(storage).compact(executor="serial").snapshot_ids)


def rescale(storage, acknowledged) -> None:
    acknowledged.append(opened(storage).rescale(bucket=3).snapshot_ids)


def move(storage, acknowledged) -> None:
    rows = pa.table({"id": [2, 1], "note": ["c", "c"]})
    report = opened(storage).write(rows, commit=lake.CommitId("run", 1))
    acknowledged.append(report.snapshot_id)


@pytest.mark.parametrize(
    ("table", "work", "before", "after"),
    [
        (POSTPONED, compact, {}, EXPECTED),
        (FIXED, rescale, EXPECTED, EXPECTED),
        (CROSSING, move, EXPECTED, {**EXPECTED, 1: "c", 2: "c"}),
    ],
    ids=["postponed rows get a bucket", "a rescale", "keys move between partitions"],
)
def test_a_fault_at_any_storage_call_leaves_all_rows_as_before_or_as_after(
    table: dict[str, Any],
    work: Callable[..., None],
    before: dict[int, str],
    after: dict[int, str],
):
    for trial in sampled_states(work, start=filled(table)):
        storage = trial.reopened()
        states = [after] if trial.acknowledged else [before, after]
        assert content(storage) in states, f"in {trial}\n{trial.storage.trace()}"
        work(storage, [])  # as a retried task does
        assert content(storage) == after, str(trial)
