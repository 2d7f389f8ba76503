"""``spark_jobs.call``: Paimon's procedures by their names and arguments."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import call
from spark_jobs.frames.procedures import PROCEDURES

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture
def warehouse(tmp_path):
    return str(tmp_path / "warehouse")


@pytest.fixture
def days(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.days",
        [("dt", "STRING"), ("id", "BIGINT")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "1"},
    )
    for number in (1, 2, 3):
        table.write(pa.table({"dt": ["2024-01-01", "2024-01-02"], "id": [number, number]}))
    return table


@pytest.fixture
def do(warehouse, days):
    def called(procedure, **arguments):
        return call(None, procedure, warehouse=warehouse, **{"table": "shop.days", **arguments})

    return called


def test_compaction_of_some_partitions(do, days):
    report = do("sys.compact", partitions="dt=2024-01-01;dt=2024-01-03", compact_strategy="full")
    assert (report["files_in"], report["files_out"]) == (3, 1)


def test_columns_to_sort_by_are_refused_without_an_order_strategy(do, days):
    with pytest.raises(lake.InvalidRequestError, match="order_by='id' has no effect without"):
        do("sys.compact", order_by="id")
    assert len(days.snapshots()) == 3


def test_tags_and_rollback(do, days):
    assert do("sys.create_tag", tag="two", snapshot=2, time_retained="7 d")["snapshot_id"] == 2
    do("create_tag", tag="one", snapshot=1)
    do("SYS.rename_tag", tag="one", target_tag="first")
    assert [tag.name for tag in days.tags.list()] == ["first", "two"]
    assert do("sys.rollback", version="two")["removed_snapshots"] == (3,)
    assert do("sys.rollback", version=1 + 1)["removed_snapshots"] == ()
    do("sys.delete_tag", tag="first, two")
    assert days.tags.list() == []
    assert do("sys.rollback_to_as_latest", snapshot_id=1)["as_latest"]
    assert [each.id for each in days.snapshots()] == [1, 2, 3]
    assert do("sys.rollback_to", snapshot_id=2)["removed_snapshots"] == (3,)


def test_expiry_partitions_and_consumers(do, days):
    do("sys.reset_consumer", consumerId="copy", nextSnapshotId=3)
    do("sys.clear_consumers", includingConsumers="", excludingConsumers="copy")
    assert [each.id for each in days.consumers.list()] == ["copy"]
    do("sys.reset_consumer", consumerId="copy")
    report = do("sys.expire_snapshots", retain_max=1, retain_min=1, max_deletes=None)
    assert list(report["snapshots"]) == [1, 2]
    do("sys.drop_partition", partitions="dt=2024-01-01")
    assert do("sys.mark_partition_done", partitions="dt=2024-01-02")
    gone = do("sys.expire_partitions", expiration_time="1 d", timestamp_formatter="yyyy-MM-dd")
    assert [each["partition"] for each in gone["expired"]] == ["dt=2024-01-02"]
    assert days.scan().count() == 0


def test_branches_rescale_and_files(do, days):
    do("sys.create_tag", tag="three")
    do("sys.create_branch", branch="dev", tag="three")
    do("sys.rename_branch", from_branch="dev", to_branch="next")
    do("sys.fast_forward", branch="next")
    do("sys.delete_branch", branch="next")
    assert days.branches.list() == []
    assert do("sys.rescale", bucket_num=2, partitions="dt=2024-01-01")["partitions"]
    for name in ("compact_manifest", "rewrite_file_index", "remove_unexisting_files"):
        assert do(f"sys.{name}")["table"] == days.location
    assert do("sys.remove_orphan_files", dry_run=True)["orphan_files"] == 0


def test_the_catalog_is_repaired(warehouse, days, tmp_path):
    """One that keeps a list of its own finds the tables that are on the storage."""
    listed = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path / 'catalog.db'}"}
    catalog = lake.open_catalog(warehouse, options=listed)
    catalog.create_database("shop", exist_ok=True)
    assert catalog.list_tables("shop") == []
    call(
        None,
        "sys.repair",
        warehouse=warehouse,
        catalog_options=listed,
        database_or_table="shop",
    )
    assert catalog.list_tables("shop") == ["days"]


@pytest.mark.parametrize(
    ("procedure", "arguments", "words"),
    [
        (
            "sys.compakt",
            {},
            "did you mean 'compact'.*The procedures are compact, compact_manifest, ",
        ),
        ("sys.vacuum", {}, "procedure 'sys.vacuum' does not exist"),
        ("sys.compact", {"stategy": "x"}, "no argument 'stategy'. It takes table, partitions, wh"),
        ("sys.rename_tag", {"tag": "x"}, "it needs 'target_tag'. It takes table, tag, target_tag"),
        ("sys.compact", {"table": None}, "it needs 'table'"),
        ("sys.compact", {"partitions": "2024"}, "partitions must be values such as"),
        ("sys.compact", {"partitions": "dt=1,dt=2"}, "column 'dt' has two values"),
        ("sys.rollback", {"version": 1, "tag": "x"}, "give only one of"),
        ("sys.rollback_to", {"snapshot_id": 1, "snapshot": 2}, "give only one of"),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(do, procedure, arguments, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        do(procedure, **arguments)


def test_without_a_session_a_warehouse_is_needed():
    with pytest.raises(lake.InvalidRequestError, match="needs the argument 'warehouse'"):
        call(None, "compact", table="shop.days")


def test_every_procedure_that_can_be_called_is_one_of_paimons():
    text = (DOCS / "procedures.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    planned = {
        name
        for row in rows
        for name in re.findall(r"`([a-z_]+)`", row[0])
        if not row[1].startswith("not planned")
    }
    assert {*PROCEDURES} <= planned
