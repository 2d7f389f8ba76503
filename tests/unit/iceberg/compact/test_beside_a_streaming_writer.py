"""Compactions run while a writer streams rows and deletes into the table, as a Flink job does.

A compaction replaces its files or drops them from its plan. No deleted row is read again, and no
row is lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Queue
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CommitConflictError
from tests.sampling import SEED, count
from tests.unit.iceberg.compact.made_deletes import delete_by_key

COMMITS = count(6, 150, "COMMITS")
KEYS = 60
FAST = {
    "commit.retry.num-retries": "200",
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "5",
    "write.delete.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}
Model = dict[int, str]


def opened(place: str) -> Any:
    return lake.open_catalog(place, format="iceberg").table("shop.orders")


def rows_of(table: Any, **which: Any) -> Model:
    found = table.scan(**which).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a row is there twice"
    return {row["id"]: row["v"] for row in found}


def stream(table: Any, turns: Queue[bool], chance: random.Random) -> Model:
    """Replace some keys by an equality delete and an append, or by an upsert, or delete them.

    Return the rows at the end. Before each change one compaction may begin, which then runs beside
    it; the last turn is False.
    """
    model: Model = {}
    for number in range(COMMITS):
        turns.put(True)
        ids = sorted(chance.sample(range(KEYS), 4))
        rows = {id: f"{number}" for id in ids}
        kind = chance.choice(["by key", "by key", "upsert", "delete"])
        if kind == "by key":
            delete_by_key(table._handle, *ids)
            table.write(arrow(rows))
        elif kind == "upsert":
            repeated(partial(table.upsert, arrow(rows), by=["id"]))
        else:
            repeated(partial(table.delete, f"id IN ({', '.join(map(str, ids))})"))
            rows = {}
        model = {id: v for id, v in model.items() if id not in ids} | rows
    turns.put(False)
    return model


def repeated(change: Callable[[], object]) -> None:
    """Make a change again if it loses to compactions more often than it plans again by itself."""
    while True:
        with suppress(CommitConflictError):
            change()
            return


def compact(table: Any, turns: Queue[bool]) -> None:
    while turns.get():
        with suppress(CommitConflictError):  # nothing is changed, and the next one plans anew
            table.compact(strategy="full", rewrite_all=True, max_commits=2)
        with suppress(CommitConflictError):
            table.compact_deletes(convert_equality=True)


def arrow(rows: Model) -> pa.Table:
    return pa.table({"id": pa.array(rows, pa.int64()), "v": pa.array(rows.values(), pa.string())})


@pytest.mark.parametrize("version", [2, 3])
def test_no_row_comes_back_and_none_is_lost(tmp_path, version):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("v", "STRING")]
    table = catalog.create_table("shop.orders", columns, options=FAST, format_version=version)
    chance, turns = random.Random(f"{SEED} {version}"), Queue[bool]()
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(stream, table, turns, chance)
        writing.add_done_callback(lambda _: turns.put(False))  # also after an error
        compacting = pool.submit(compact, opened(str(tmp_path)), turns)
    compacting.result()
    model = writing.result()
    assert rows_of(table) == model
    replaced = [each for each in table.snapshots() if each.snapshot.operation == "replace"]
    assert replaced, "no compaction was published"
    for each in chance.sample(replaced, min(len(replaced), 4)):
        before = rows_of(table, snapshot=each.snapshot.parent_id)
        assert rows_of(table, snapshot=each.snapshot_id) == before
    table.compact(strategy="full", rewrite_all=True)
    assert rows_of(table) == model
