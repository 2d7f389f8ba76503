"""Java reads what an upkeep of partitions, statistics, indexes and manifests leaves, and copies."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.java.wire import json_rows

DAYS = ("2020-01-01", "2999-01-01")


def filled(catalog: lake.Catalog, **how) -> lake.Table:
    columns = [("dt", "STRING"), ("id", "BIGINT"), ("kind", "STRING")]
    table = catalog.create_table("shop.t", columns, partition_by=["dt"], **how)
    for number in range(3):
        rows = {"dt": list(DAYS), "id": [number, number + 10], "kind": ["a", f"k{number}"]}
        table.write(pa.table(rows))
    return table


def reads_the_same(table: lake.Table, peer: JavaPeer, name: str = "shop.t") -> bool:
    found, ours = peer.read(name), table.scan().to_arrow()
    theirs = sorted(map(repr, found.rows))
    return (list(found.columns), theirs) == (ours.column_names, sorted(map(repr, json_rows(ours))))


@pytest.mark.parametrize(
    "how", [{}, {"primary_key": ["dt", "id"], "options": {"bucket": "1"}}], ids=["append", "keyed"]
)
def test_java_reads_and_writes_on_after_each_of_them(catalog, peer: JavaPeer, how: dict):
    table = filled(catalog, **how)
    assert table.expire_partitions(expiration_time="7 d").snapshot_ids
    assert reads_the_same(table, peer)
    assert table.compact_manifests().snapshot_id
    assert reads_the_same(table, peer)
    assert table.analyze("all").snapshot_id
    assert peer.call("statistics", table="shop.t")["mergedRecordCount"] == 3
    table.mark_partitions_done([{"dt": DAYS[1]}], actions=["success-file", "done-partition"])
    assert reads_the_same(table, peer)
    table = catalog.alter_table(
        "shop.t",
        lake.set_option("file-index.bloom-filter.columns", "kind"),
        lake.set_option("file-index.in-manifest-threshold", "1 b"),
    )
    assert len(table.rewrite_file_indexes().changed) == 3
    assert reads_the_same(table, peer)
    assert peer.read("shop.t", where=("kind", "=", "k1")).column("id") == [11]
    peer.call("drop_partition", table="shop.t", partition={"dt": DAYS[1]})
    assert table.scan().count() == 0


def test_java_understands_the_statistics_of_every_type(catalog, peer: JavaPeer):
    columns = {
        "flag": ("BOOLEAN", [True, False]),
        "tiny": ("TINYINT", pa.array([-1, 5], pa.int8())),
        "small": ("SMALLINT", pa.array([-1, 5], pa.int16())),
        "number": ("INT", pa.array([-1, 5], pa.int32())),
        "big": ("BIGINT", [-1, 1 << 60]),
        "real": ("FLOAT", pa.array([1.5, -2.25], pa.float32())),
        "double": ("DOUBLE", [1e300, -0.1]),
        "price": ("DECIMAL(10, 2)", pa.array([Decimal("1.10"), None], pa.decimal128(10, 2))),
        "day": ("DATE", [date(2024, 1, 1), date(1960, 1, 1)]),
        "hour": ("TIME(3)", pa.array([time(1), time(2)], pa.time32("ms"))),
        "at": ("TIMESTAMP(3)", pa.array([datetime(2024, 1, 1, 10)] * 2, pa.timestamp("ms"))),
        "instant": (
            "TIMESTAMP_LTZ(6)",
            pa.array([datetime(2024, 1, 1, 10, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
        ),
        "name": ("STRING", ["béé", None]),
    }
    table = catalog.create_table("shop.t", [(name, text) for name, (text, _) in columns.items()])
    table.write(pa.table({name: values for name, (_, values) in columns.items()}))
    ours = table.analyze("all").to_dict()
    theirs = peer.call("statistics", table="shop.t")
    assert theirs["mergedRecordCount"] == ours["rows"]
    assert theirs["mergedRecordSize"] == ours["bytes"]
    assert json.loads(json.dumps(theirs["colStats"])) == ours["columns"]


def test_java_reads_directories_that_became_a_table_where_they_lie(
    catalog, peer: JavaPeer, tmp_path: Path
):
    rows = pa.table(
        {
            "id": [1, 2],
            "n": ["x", None],
            "d": [date(2024, 1, 1)] * 2,
            "at": pa.array([datetime(2024, 1, 1)] * 2, pa.timestamp("us")),
            "price": pa.array([Decimal("1.10"), None], pa.decimal128(10, 2)),
            "real": pa.array([1.5, None], pa.float32()),
        }
    )
    for number in range(2):
        directory = tmp_path / "plain" / f"dt=2024-01-0{number + 1}" / "h=7"
        directory.mkdir(parents=True)
        pq.write_table(rows, directory / "a.parquet")
    directory = tmp_path / "plain" / "dt=2024-01-03" / "h=8"
    directory.mkdir(parents=True)
    orc.write_table(rows.drop_columns(["at"]), directory / "b.orc")
    types = {"dt": "DATE", "h": "INT"}
    report = lake.migrate_directory(
        catalog, str(tmp_path / "plain"), "shop.t", partition_types=types
    )
    assert [each.how for each in report.files] == ["registered", "registered", "converted"]
    table = catalog.table("shop.t")
    assert reads_the_same(table, peer)
    assert len(peer.read("shop.t", where=("id", "=", 2)).rows) == 3
    table.compact()
    assert reads_the_same(table, peer)


def test_java_reads_a_clone_and_goes_on_with_it(catalog, peer: JavaPeer):
    table = filled(catalog, primary_key=["dt", "id"], options={"bucket": "1"})
    table.compact()
    for name, how in (("shop.newest", {}), ("shop.full", {"full": True})):
        lake.clone_table(table, catalog, name, **how)
        clone = catalog.table(name)
        assert reads_the_same(clone, peer, name)
        clone.write(pa.table({"dt": [DAYS[1]], "id": [99], "kind": ["new"]}))
        assert reads_the_same(clone, peer, name)
    assert reads_the_same(table, peer)
