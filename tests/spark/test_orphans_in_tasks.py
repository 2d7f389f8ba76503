"""The search for orphan files in Spark's tasks finds the same files as the search in threads."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.orphans.readers import Readers
from spark_jobs import SparkExecutor, remove_orphans

DAYS = 20


class _Counting:
    """A Spark executor that keeps what it was asked to do, and in which order."""

    def __init__(self, spark):
        self._executor = SparkExecutor(spark)
        self.asked = []

    def outcomes(self, work, units, stop):
        self.asked.append(units)
        return self._executor.outcomes(work, units, stop)


@pytest.fixture
def orders(catalog):
    """As many partitions and snapshots as are worth sending; one partition has most files."""
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("dt", "STRING")],
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": "2"},
    )
    days = [f"p{number:02}" for number in range(DAYS)]
    for number in range(DAYS):
        table.write(pa.table({"id": [number], "dt": ["p07"]}))
    table.write(pa.table({"id": [*range(DAYS)], "dt": days}))
    return table


@pytest.fixture
def orphans(orders, warehouse):
    """Old files of a writer that never committed, in several places, and one that is young."""
    root = Path(warehouse) / "shop.db" / "orders"
    lost = [root / "manifest" / "manifest-0000aaaa-0000-0000-0000-000000000000-0"]
    for number, bucket in enumerate(sorted(root.glob("dt=*/bucket-*"))[::3]):
        lost.append(bucket / f"data-{number:08}-0000-0000-0000-000000000000-0.parquet")
    for path in lost:
        path.write_bytes(b"x" * 10)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    young = root / "dt=p00" / "bucket-0" / "data-ffffffff-0000-0000-0000-000000000000-0.parquet"
    young.parent.mkdir(exist_ok=True)
    young.write_bytes(b"x")
    return lost


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_report_is_that_of_threads(spark, orders, orphans, dry_run):
    expected = orders.remove_orphans(dry_run=True)
    counting = _Counting(spark)

    report = orders.remove_orphans(dry_run=dry_run, executor=counting)

    kinds = [type(units[0].thing).__name__ for units in counting.asked]
    assert {"ManifestMeta", "tuple"} == {*kinds}, "manifests and directories are read in tasks"
    assert sorted(each.path for each in report.files) == sorted(
        each.path for each in expected.files
    )
    assert (
        report.scanned_files,
        report.young_files,
        report.orphan_files,
        report.looked_through,
    ) == (
        expected.scanned_files,
        expected.young_files,
        len(orphans),
        expected.looked_through,
    )
    assert [path.exists() for path in orphans] == [dry_run] * len(orphans)
    assert orders.scan().count() == 2 * DAYS - 1


def test_the_partition_with_most_files_comes_first(spark, orders, orphans):
    counting = _Counting(spark)

    orders.remove_orphans(executor=counting)

    for units in counting.asked:
        sizes = [unit.bytes for unit in units]
        assert sizes == sorted(sizes, reverse=True)
    [directories] = [units for units in counting.asked if isinstance(units[0].thing, tuple)]
    assert "dt=p07" in directories[0].thing[0]


def test_a_manifest_that_is_gone_is_named_and_nothing_goes(spark, orders, orphans, warehouse):
    snapshot = orders.latest_snapshot()
    root = Path(warehouse) / "shop.db" / "orders" / "manifest"
    before = sorted(root.rglob("*"))
    named = [each.name for each in root.glob("manifest-*-0") if each not in orphans]
    gone = root / min(name for name in named if not name.startswith("manifest-list"))
    gone.unlink()

    with pytest.raises(lake.CorruptTableError, match=gone.name):
        orders.remove_orphans(dry_run=False, executor=SparkExecutor(spark))

    assert all(path.exists() for path in orphans)
    assert orders.latest_snapshot() == snapshot
    assert sorted(root.rglob("*")) == [path for path in before if path != gone]


def test_the_job_reads_in_tasks_and_tells_how_far_it_is(spark, orders, orphans, warehouse, caplog):
    caplog.set_level("INFO", "spark_jobs.runtime.progress")
    request = {"warehouse": warehouse, "table": "shop.orders", "engine": "spark", "dry_run": False}

    result = remove_orphans.run(request, spark)

    assert result["report"]["removed_files"] == len(orphans)
    assert not any(path.exists() for path in orphans)
    last = [json.loads(record.message) for record in caplog.records][-1]
    assert (last["done"], last["unit"]) == (last["total"], "manifests or directories")


def test_a_scan_that_is_given_up_stops_its_tasks(spark):
    readers = Readers(executor=SparkExecutor(spark, at_once=2))
    seconds = [0.0, *(60.0 + number for number in range(20))]
    found = readers.each(_slow, seconds, 1, lambda _: 1 << 30)
    began = time.monotonic()

    assert next(found) == 0.0
    found.close()

    assert time.monotonic() - began < 45, "a task slept on after it was given up"
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


def _slow(seconds):
    time.sleep(seconds)
    return seconds
