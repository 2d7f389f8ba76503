"""Sensors see the commits and consumers of Iceberg tables; other conditions refuse them by name."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.sensors.conditions import (
    CompactionNeeded,
    ConsumerLag,
    PartitionThere,
    PublicationCurrent,
    SnapshotAdvanced,
    WatermarkReached,
)
from airflow_provider_lake.triggers.cursor import WatchedCommits, advance
from tests.golden.iceberg import iceberg_table
from tests.golden.mixed import mixed_table
from tests.unit.iceberg.growing_table import GrowingTable


def opened(name: str) -> lake.IcebergTable:
    table = lake.open_table(iceberg_table(name).location)
    assert isinstance(table, lake.IcebergTable)
    return table


def test_newer_commits_are_one_change_whose_position_is_the_next_start():
    table = opened("cow_dml")
    first = table.snapshots()[0].position
    found = SnapshotAdvanced(after_snapshot=str(first)).check("shop.orders", table)
    assert found is not None
    kept = json.loads(json.dumps(found))
    assert table.position(kept).is_exactly(table.position())
    ids = (table.latest_snapshot().id, table.snapshots()[0].id)
    assert (kept["snapshot_id"], kept["previous_snapshot_id"], kept["commits"]) == (*ids, 6)
    assert (kept["commit_kind"], kept["missed"], kept["rewound"]) == ("OVERWRITE", False, False)
    after = SnapshotAdvanced(after_snapshot=kept["position"])
    assert after.check("shop.orders", table) is None


def test_the_change_since_a_time_begins_right_before_its_first_commit_in_a_mixed_table(tmp_path):
    """A position of a Mixed table has the numbers of two stores."""
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL")]
    table = catalog.create_table("shop.orders", columns, format="mixed", primary_key=["id"])
    for number in (1, 2):
        table.write(pa.table({"id": [number]}))
    table.compact(strategy="full")
    table.write(pa.table({"id": [3]}))
    *_, before, newest = table.snapshots()
    found = SnapshotAdvanced(since_millis=newest.time_millis).check("shop.orders", table)
    assert found is not None
    assert (found["commits"], found["snapshot_id"]) == (1, newest.id)
    assert found["previous_snapshot_id"] == before.id
    assert table.position(found["previous_position"]) == before.position


def test_commits_count_by_their_kind():
    """A compaction of Iceberg is a ``replace``."""
    table = opened("rewritten")
    counted = {
        kind: SnapshotAdvanced(kinds=(kind,)).check("shop.orders", table)
        for kind in ("APPEND", "COMPACT", "OVERWRITE")
    }
    assert counted["OVERWRITE"] is None
    assert [found and found["commits"] for found in counted.values()] == [11, 2, None]


@pytest.mark.parametrize("name", ["six_commits", "cow_dml", "v3_deletion_vectors", "rewritten"])
def test_the_rows_of_all_commits_are_those_of_the_table(name):
    table = opened(name)
    found = SnapshotAdvanced(kinds=("APPEND", "COMPACT", "OVERWRITE")).check("shop.orders", table)
    assert found is not None
    assert found["rows"] == table.scan().count()


def test_snapshots_that_expired_unseen_are_told():
    found = SnapshotAdvanced(after_snapshot="main/1").check("shop.orders", opened("expired"))
    assert found is not None
    assert found["missed"]


def test_a_rollback_that_removed_the_position_is_reported(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in (1, 2, 3):
        table.write(pa.table({"id": [number]}))
    kept, _, removed = table.snapshots()
    after = [removed.position, removed.snapshot_id]
    table.rollback(snapshot=kept.position)
    for _ in range(2):
        newest = table.latest_snapshot()
        for each in after:
            wanted = SnapshotAdvanced(after_snapshot=each if isinstance(each, int) else str(each))
            found = wanted.check("shop.orders", table)
            assert found is not None
            assert (found["rewound"], found["previous_position"]) == (True, None)
            assert (found["snapshot_id"], found["commits"]) == (newest.id, 1)
        assert SnapshotAdvanced(after_snapshot=str(newest.position)).check("s.o", table) is None
        table.write(pa.table({"id": [4]}))


def test_a_mixed_table_without_the_position_is_reported():
    table = lake.open_table(mixed_table("keyed_int").location)
    *_, before, newest = table.snapshots()
    other = lake.Position(before.position.numbers, "main", "1-")
    found = SnapshotAdvanced(after_snapshot=str(other)).check("shop.orders", table)
    assert found is not None
    assert (found["rewound"], found["previous_position"]) == (True, None)
    assert found["position"] == str(newest.position)


@pytest.mark.parametrize("lost", ["expired", "recreated"])
def test_a_mixed_table_without_the_snapshot_id_is_reported(tmp_path, lost):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    made = {"schema": [("id", "BIGINT NOT NULL")], "format": "mixed", "primary_key": ["id"]}
    table = catalog.create_table("shop.orders", **made)
    table.write(pa.table({"id": [1]}))
    after = table.latest_snapshot().id
    if lost == "recreated":
        catalog.drop_table("shop.orders", purge=True)
        table = catalog.create_table("shop.orders", **made)
    for number in (2, 3):
        table.write(pa.table({"id": [number]}))
    if lost == "expired":
        table.expire_snapshots(older_than="0 s", retain_min=1)
    newest = table.latest_snapshot()

    found = SnapshotAdvanced(after_snapshot=after).check("shop.orders", table)
    assert found is not None
    assert (found["rewound"], found["previous_position"]) == (True, None)
    assert found["position"] == str(newest.position)
    later = SnapshotAdvanced(after_snapshot=after, since_millis=newest.time_millis + 1)
    assert later.check("shop.orders", table) is None

    wanted = WatchedCommits("shop.orders", ("APPEND", "OVERWRITE"), changelog=False)
    assert advance(table, newest, lake.Position((after,)), wanted) == (found, newest.position)

    catalog.drop_table("shop.orders", purge=True)
    with pytest.raises(lake.NotFoundError):
        advance(table, newest, lake.Position((after,)), wanted)


def test_a_consumer_that_has_caught_up_is_found(tmp_path):
    made = GrowingTable(tmp_path, "cow_dml", 3)
    table = made.open()
    table.consumers.set("job", next_snapshot=2)
    lag = ConsumerLag(consumer="job")
    assert lag.check("shop.orders", table) is None
    table.consumers.set("job", after=table.position())
    found = lag.check("shop.orders", table)
    assert found is not None
    assert (found["next_snapshot"], found["behind"]) == (3, 0)


@pytest.mark.parametrize("format_name", ["paimon", "iceberg"])
def test_a_consumer_whose_snapshots_a_rollback_removed_has_not_caught_up(tmp_path, format_name):
    catalog = lake.open_catalog(str(tmp_path), format=format_name)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    lag = ConsumerLag(consumer="job")
    table.consumers.set("job", next_snapshot=1)
    assert lag.check("shop.orders", table) is not None, "no snapshot yet"
    for number in (1, 2, 3):
        table.write(pa.table({"id": [number]}))
    table.consumers.set("job", after=table.position())
    assert lag.check("shop.orders", table) is not None

    as_latest = {"as_latest": False} if format_name == "paimon" else {}
    table.rollback(snapshot=table.snapshots()[0].id, **as_latest)
    assert lag.check("shop.orders", table) is None
    table.consumers.set("job", after=table.position())
    assert lag.check("shop.orders", table) is not None


def test_a_compaction_is_due_if_its_rules_choose_files():
    found = CompactionNeeded().check("shop.orders", opened("many_files"))
    assert found is not None
    assert (found["units"], found["files"]) == (1, 200)
    assert CompactionNeeded(min_files=201).check("shop.orders", opened("many_files")) is None
    assert CompactionNeeded().check("shop.orders", opened("rewritten")) is None


@pytest.mark.parametrize(
    "condition",
    [
        SnapshotAdvanced(changelog=True),
        WatermarkReached(millis=1),
        PartitionThere(partition={"p": 1}, done=True),
        PublicationCurrent(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_condition_that_would_never_be_met_is_refused(condition):
    with pytest.raises(lake.UnsupportedError, match="is an Iceberg table, which has no operation"):
        condition.check("shop.orders", opened("cow_dml"))
