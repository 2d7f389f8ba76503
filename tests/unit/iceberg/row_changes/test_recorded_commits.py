"""A change with a commit id that meets no row is published: its repetition spares newer rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.unit.iceberg.write.made_tables import made_table

COMMIT = lake.CommitId("nightly", 0)
CHANGES: Mapping[str, Callable[[IcebergTable], Any]] = {
    "delete": lambda table: table.delete("id = 7", commit=COMMIT),
    "delete of whole files": lambda table: table.delete("k = 'k1'", commit=COMMIT),
    "update": lambda table: table.update("id = 7", {"id": 70}, commit=COMMIT),
    "upsert of deletes": lambda table: table.upsert(rows(7), ["id"], kinds=["-D"], commit=COMMIT),
    "truncate": lambda table: table.truncate(commit=COMMIT),
    "drop_partitions": lambda table: table.drop_partitions([{"k": "k1"}], commit=COMMIT),
    "overwrite": lambda table: table.write(rows(), overwrite={"k": "k1"}, commit=COMMIT),
    "overwrite by messages": lambda table: table.commit([], overwrite="table", commit=COMMIT),
}


def rows(*ids: int) -> pa.Table:
    texts = [f"k{each % 2}" for each in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "k": pa.array(texts, pa.string())})


@pytest.fixture(params=[2, 3])
def table(request) -> IcebergTable:
    """A table without a snapshot, partitioned by k."""
    storage = MemoryStorage(f"recorded-{request.param}")
    return IcebergTable(made_table(storage, request.param, partition={"k": "identity"}))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("has_rows", [False, True], ids=["without rows", "with other rows"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_repetition_spares_rows_that_were_added_since(table, name, has_rows):
    change = CHANGES[name]
    if has_rows and name not in ("truncate", "overwrite by messages"):
        table.write(rows(2))
    before = sorted(table.scan().to_arrow()["id"].to_pylist()) if has_rows else []
    first = change(table)
    assert (first.replayed, first.rows) == (False, 0)
    recorded = table.latest_snapshot()
    assert (first.snapshot_id, recorded.operation) == (recorded.snapshot_id, "delete")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == before
    table.write(rows(7))
    repeated = change(table)
    assert (repeated.replayed, repeated.snapshot_id) == (True, first.snapshot_id)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted([*before, 7])


@pytest.mark.parametrize("name", ["delete", "update"])
def test_without_a_commit_id_nothing_is_published(table, name):
    table.write(rows(2))
    change = {"delete": table.delete, "update": lambda where: table.update(where, {"id": 1})}
    report = change[name]("id = 7")
    assert report.snapshot_id is None
    assert report.reason == "no row meets the condition, so no snapshot was made"


def test_a_dry_run_records_nothing(table):
    table.write(rows(2))
    assert table.delete("id = 7", commit=COMMIT, dry_run=True).snapshot_id is None
    assert len(table.snapshots()) == 1
