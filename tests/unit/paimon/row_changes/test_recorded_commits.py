"""A change with a commit id that meets no row is published: its repetition spares newer rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake

COMMIT = lake.CommitId("nightly", 0)
CHANGES: Mapping[str, Callable[[lake.Table], Any]] = {
    "delete": lambda table: table.delete("id = 7", commit=COMMIT),
    "update": lambda table: table.update("id = 7", {"note": "x"}, commit=COMMIT),
    "truncate": lambda table: table.truncate(commit=COMMIT),
    "drop_partitions": lambda table: table.drop_partitions([{"dt": "d1"}], commit=COMMIT),
    "overwrite": lambda table: table.write(rows(), overwrite={"dt": "d1"}, commit=COMMIT),
}
KINDS = {
    "append": {},
    "vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "keyed": {"primary_key": ["id", "dt"], "options": {"bucket": "1"}},
}


def rows(*ids: int) -> pa.Table:
    texts = [f"d{each % 2}" for each in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "dt": pa.array(texts, pa.string()),
            "note": pa.array(texts, pa.string()),
        }
    )


@pytest.fixture(params=KINDS)
def table(request, tmp_path) -> lake.Table:
    """A table without a snapshot, partitioned by dt."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("note", "STRING")]
    return catalog.create_table("shop.orders", columns, partition_by=["dt"], **KINDS[request.param])


def content(table: lake.Table) -> list[tuple[int, str]]:
    found = table.scan().to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["note"].to_pylist(), strict=True))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("has_rows", [False, True], ids=["without rows", "with other rows"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_repetition_spares_rows_that_were_added_since(table, name, has_rows):
    change = CHANGES[name]
    if has_rows and name != "truncate":
        table.write(rows(2))
    before = content(table)
    first = change(table)
    assert not first.replayed
    assert first.snapshot_id == table.latest_snapshot().id
    assert content(table) == before
    table.write(rows(7))
    repeated = change(table)
    assert (repeated.replayed, repeated.snapshot_id) == (True, first.snapshot_id)
    assert content(table) == [*before, (7, "d1")]


@pytest.mark.parametrize("name", ["delete", "update"])
def test_without_a_commit_id_nothing_is_published(table, name):
    table.write(rows(2))
    changes = {"delete": table.delete, "update": lambda where: table.update(where, {"note": "x"})}
    report = changes[name]("id = 7")
    assert report.snapshot_id is None
    assert report.reason == "no row meets the condition, so no snapshot was made"
    assert table.delete("id = 7", commit=COMMIT, dry_run=True).snapshot_id is None
    assert table.latest_snapshot().id == 1
