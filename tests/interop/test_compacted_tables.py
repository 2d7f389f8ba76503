"""pypaimon reads what was compacted here, and what it writes afterwards merges as it should."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.paimon.compact import joined_files
from lakeformat.paimon.read.plan import plan_files
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

COLUMNS = [("dt", "STRING NOT NULL"), ("id", "BIGINT NOT NULL"), ("name", "STRING"), ("n", "INT")]
KEYED = {"primary_key": ["dt", "id"], "partition_by": ["dt"]}
ENGINES = {
    "deduplicate": {},
    "partial-update": {},
    "aggregation": {"fields.n.aggregate-function": "sum"},
}


def some_rows(table: lake.Table, number: int) -> pa.Table:
    rows = [
        {
            "dt": f"day-{at % 2}",
            "id": at * (number + 1) % 60,
            "name": None if at % 5 == number else f"{number}-{at}",
            "n": at,
        }
        for at in range(40)
    ]
    by_key = {(row["dt"], row["id"]): row for row in rows}
    return pa.Table.from_pylist([*by_key.values()], table.schema.arrow_schema())


def both_read_the_same(table: lake.Table, peer: Peer) -> list[dict]:
    rows = rows_of(table.scan().to_arrow())
    assert_same_rows(rows_of(peer.read("shop.orders")), rows)
    return rows


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("engine", list(ENGINES))
def test_keyed_tables_written_by_both_in_turn(catalog, peer: Peer, engine: str, file_format: str):
    options = {"bucket": "2", "merge-engine": engine, "file.format": file_format, **ENGINES[engine]}
    table = catalog.create_table("shop.orders", COLUMNS, **KEYED, options=options)
    for number in range(4):
        peer.write("shop.orders", some_rows(table, number))
    before = both_read_the_same(table, peer)
    table.compact()
    assert_same_rows(both_read_the_same(table, peer), before)
    assert {entry.file.level for entry in plan_files(table._handle, table.latest_snapshot())} == {5}
    for number in range(4, 6):  # upstream's writers go on where the compaction ended
        peer.write("shop.orders", some_rows(table, number))
    before = both_read_the_same(table, peer)
    if engine == "deduplicate":
        found = {(row["dt"], row["id"]): row for row in before}
        for row in rows_of(some_rows(table, 5)):
            assert found[row["dt"], row["id"]] == row
    table.compact()
    assert_same_rows(both_read_the_same(table, peer), before)
    assert table.plan_compaction().units == ()


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}])
def test_append_tables_written_by_both_in_turn(catalog, peer: Peer, options: dict[str, str]):
    table = catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"], options=options)
    for number in range(6):
        peer.write("shop.orders", some_rows(table, number))
    before = both_read_the_same(table, peer)
    assert table.compact(strategy="minor").snapshot_ids
    assert_same_rows(both_read_the_same(table, peer), before)
    peer.write("shop.orders", some_rows(table, 6))
    table.write(some_rows(table, 7))
    before = both_read_the_same(table, peer)
    table.compact()
    assert_same_rows(both_read_the_same(table, peer), before)
    assert table.plan_compaction().units == ()


def test_deleted_rows_stay_deleted(catalog, peer: Peer):
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
    table = catalog.create_table("shop.orders", COLUMNS, **KEYED, options=options)
    rows = some_rows(table, 1)
    peer.write("shop.orders", rows)
    table.compact()
    table.write(rows.slice(0, 10), ["-D"] * 10)
    table.write(rows.slice(10, 10), ["-D"] * 10)
    table.compact(strategy="minor")
    assert len(both_read_the_same(table, peer)) == rows.num_rows - 20
    table.compact()
    assert len(both_read_the_same(table, peer)) == rows.num_rows - 20


@pytest.mark.parametrize("marks", ["true", "false"])
@pytest.mark.parametrize("buckets", [{"bucket": "-1"}, {"bucket": "2", "bucket-key": "id"}])
def test_rows_deleted_and_updated_here_are_so_for_pypaimon(catalog, peer: Peer, buckets, marks):
    options = {**buckets, "deletion-vectors.enabled": marks}
    table = catalog.create_table("shop.orders", COLUMNS, partition_by=["dt"], options=options)
    for number in range(3):
        table.write(some_rows(table, number))
    everything = table.scan().count()
    gone = table.delete("id < 10 AND dt = 'day-1'").rows
    changed = table.update("n = 8", {"name": "changed"}).rows
    assert gone
    assert changed
    found = both_read_the_same(table, peer)
    assert len(found) == everything - gone
    assert [row["name"] for row in found if row["n"] == 8] == ["changed"] * changed
    table.compact()
    assert_same_rows(both_read_the_same(table, peer), found)


def test_files_that_were_joined_without_decoding_are_read(catalog, peer: Peer, monkeypatch):
    monkeypatch.setattr(joined_files, "_LEAST_GROUP_ROWS", 1)
    table = catalog.create_table("shop.orders", COLUMNS, **KEYED, options={"bucket": "1"})
    whole = some_rows(table, 0).sort_by("id")
    for start in (10, 20, 0, 30):  # no two files share a key
        peer.write("shop.orders", whole.slice(start, 10))
    before = both_read_the_same(table, peer)
    table.compact()
    assert_same_rows(both_read_the_same(table, peer), before)
    files = [entry.file for entry in plan_files(table._handle, table.latest_snapshot())]
    assert [(file.level, file.row_count) for file in files] == [(5, 20), (5, 20)]
    for file in files:
        [path] = Path(table._handle.uri.removeprefix("file://")).rglob(file.file_name)
        assert pq.read_metadata(path).num_row_groups == 4
    peer.write("shop.orders", some_rows(table, 1))
    table.compact()
    both_read_the_same(table, peer)
