"""The content of a commit's snapshot, its refusals, and its identity."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.commit.commit import CommitOptions, commit_statistics
from lakeformat.paimon.commit.identity import EarlierCommits
from lakeformat.paimon.metadata.snapshot import CommitKind
from lakeformat.paimon.metadata.statistics import TableStatistics

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def orders(catalog) -> lake.Table:
    return catalog.create_table("shop.orders", [("id", "BIGINT")])


def change_snapshot(table: lake.Table, **members) -> None:
    """Make the newest snapshot look as another writer would have left it."""
    storage, layout = table._handle.storage, table._handle.layout
    path = layout.snapshot(table.latest_snapshot().id)
    content = {**json.loads(storage.read(path)), **members}
    storage.overwrite(path, json.dumps(content).encode())


def test_counts_and_sizes_add_up(orders, tmp_path):
    orders.write(ROWS)
    orders.write(ROWS.slice(0, 1))
    first, second = orders.snapshots()
    assert (first.total_record_count, first.delta_record_count) == (2, 2)
    assert (second.total_record_count, second.delta_record_count) == (3, 1)
    for snapshot in (first, second):
        for name, size in (
            (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
            (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
        ):
            [file] = tmp_path.rglob(name)
            assert file.stat().st_size == size


def test_what_other_writers_keep_in_snapshots_is_carried_on(orders):
    orders.write(ROWS)
    commit_statistics(orders._handle, TableStatistics(1, 0), CommitOptions())
    statistics = orders.latest_snapshot().statistics
    change_snapshot(orders, nextRowId=17, watermark=5)
    orders.write(ROWS, watermark=3)
    newest = orders.latest_snapshot()
    assert (newest.next_row_id, newest.watermark, newest.statistics) == (17, 5, statistics)


def test_the_number_java_writes_where_there_is_no_watermark_is_none(orders):
    orders.write(ROWS)
    change_snapshot(orders, watermark=-(2**63))
    orders.write(ROWS)
    assert orders.latest_snapshot().watermark is None


def test_the_snapshot_names_the_schema_in_force_and_drops_statistics_of_an_older_one(
    catalog, orders
):
    orders.write(ROWS)
    change_snapshot(orders, statistics="stat-1")
    catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))

    orders.write(ROWS)  # by a writer that still has the old schema

    newest = orders.latest_snapshot()
    assert (newest.schema_id, newest.statistics) == (1, None)
    assert lake.open_table(orders.location).scan().to_arrow().column_names == ["id", "note"]


def test_a_snapshot_of_another_kind_is_not_the_commit(orders):
    identity = lake.CommitId("run", 3)
    orders.write(ROWS, commit=identity)
    found = EarlierCommits(orders._handle, identity, CommitKind.COMPACT)
    assert found.find(orders.latest_snapshot()) is None


def test_the_whole_history_is_read_once_however_long_the_commit_takes(orders):
    for number in range(5):
        orders.write(ROWS, commit=lake.CommitId("other", number))
    reads = []
    storage = orders._handle.storage
    original = storage.read
    storage.read = lambda path, *limit: reads.append(path) or original(path, *limit)
    orders.write(ROWS, commit=lake.CommitId("run", 0))
    del storage.read
    older = [path for path in reads if path.endswith(tuple(f"snapshot-{n}" for n in range(1, 5)))]
    assert len(older) == len(set(older)) == 4


def test_a_commit_out_of_order_is_refused_because_history_cannot_tell(orders):
    orders.write(ROWS, commit=lake.CommitId("run", 5))
    with pytest.raises(lake.InvalidRequestError, match=r"arrived after commit 5 .* must ascend"):
        orders.write(ROWS, commit=lake.CommitId("run", 3))
    assert orders.write(ROWS, commit=lake.CommitId("run", 5)).replayed
    assert orders.write(ROWS, commit=lake.CommitId("run", 6)).snapshot_id == 2


@pytest.mark.parametrize(
    ("user", "identifier"),
    [
        ("", 1),
        (5, 1),
        (None, 1),
        ("run", -1),
        ("run", 1.0),
        ("run", True),
        ("run", "1"),
        ("run", 2**63),
    ],
)
def test_an_identity_a_snapshot_cannot_hold_is_refused(user, identifier):
    with pytest.raises(lake.InvalidRequestError, match=r"CommitId: (user|identifier) must be"):
        lake.CommitId(user, identifier)


@pytest.mark.parametrize(
    "arguments",
    [
        {"watermark": 1.5},
        {"watermark": "1"},
        {"watermark": True},
        {"watermark": 2**63},
        {"properties": {"a": 1}},
        {"properties": {"a": None}},
        {"properties": {1: "a"}},
    ],
)
def test_arguments_a_snapshot_cannot_hold_are_refused_before_anything_is_written(
    orders, tmp_path, arguments
):
    with pytest.raises(lake.InvalidRequestError):
        orders.write(ROWS, **arguments)
    assert list(tmp_path.rglob("*.parquet")) == []
    with pytest.raises(lake.InvalidRequestError):
        orders.commit([], **arguments)


def prepared(table: lake.Table) -> list[lake.CommitMessage]:
    writer = table.new_writer()
    writer.write(ROWS)
    return writer.prepare()


def test_the_same_message_twice_in_one_commit_is_refused(orders):
    messages = prepared(orders)
    with pytest.raises(lake.InvalidRequestError, match=r"this commit contains .* twice"):
        orders.commit(messages + messages)
    assert orders.commit(messages).rows == 2


def test_a_writer_hands_over_its_files_once(orders):
    writer = orders.new_writer()
    writer.write(ROWS)
    writer.prepare()
    with pytest.raises(lake.InvalidRequestError, match="finished"):
        writer.prepare()


def test_messages_of_another_table_or_of_a_writer_that_gave_up_are_refused(catalog, orders):
    other = catalog.create_table("shop.other", [("id", "BIGINT")])
    writer = orders.new_writer()
    writer.write(ROWS)
    messages = writer.prepare()
    with pytest.raises(
        lake.InvalidRequestError, match=r"does not exist: the message .* belongs to another"
    ):
        other.commit(messages)
    writer.abort()
    with pytest.raises(lake.InvalidRequestError, match="does not exist"):
        orders.commit(messages)
    assert orders.latest_snapshot() is None


def test_wide_rows_are_written_before_they_fill_the_memory(catalog, monkeypatch):
    from lakeformat.paimon.datafile import rolling_writer

    monkeypatch.setattr(rolling_writer, "ROW_GROUP_BYTES", 4 << 20)
    table = catalog.create_table("shop.wide", [("text", "STRING")])
    wide = pa.table({"text": ["x" * (1 << 20)] * 8})
    writer = table.new_writer()
    for batch in wide.to_batches(max_chunksize=1):
        writer.write(batch)
        (bucket,) = writer._buckets._buckets.values()
        assert bucket.open._held_bytes < rolling_writer.ROW_GROUP_BYTES + (9 << 17)
    writer.abort()
