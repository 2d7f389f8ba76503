"""Compaction in Spark's tasks: the same result, with progress, and stopped on request."""

import threading
import time
from dataclasses import dataclass

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import SparkExecutor
from spark_jobs.frames.executor import _TaggedJobs
from tests.spark.orders import data_files


@pytest.fixture
def orders(catalog):
    """Two partitions of two buckets, each with rows to merge."""
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("dt", "STRING"), ("note", "STRING")],
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": "2"},
    )
    for note in "ab":
        rows = {"id": [*range(40)], "dt": ["p0", "p1"] * 20, "note": [note] * 40}
        table.write(pa.table(rows))
    return table


def test_all_units_are_compacted_and_told_of(spark, orders):
    told = []
    before = orders.scan().to_arrow().sort_by("id")

    report = orders.compact(executor=SparkExecutor(spark), on_progress=told.append)

    assert (report.files_in, report.files_out, len(report.snapshot_ids)) == (8, 4, 1)
    assert [each.done for each in told] == [0, 1, 2, 3, 4]
    assert orders.scan().to_arrow().sort_by("id").equals(before)
    assert orders.compact(executor=SparkExecutor(spark)).snapshot_ids == ()


def test_sorting_runs_there_too(spark, catalog):
    events = catalog.create_table("shop.events", [("id", "BIGINT")])
    events.write(pa.table({"id": [3, 1, 2]}))

    events.compact(order_by=["id"], executor=SparkExecutor(spark))

    assert events.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]


def test_buckets_are_rescaled_there_too(spark, orders):
    before = orders.scan().to_arrow().sort_by("id")

    report = orders.rescale(bucket=4, executor=SparkExecutor(spark))

    assert {each.outcome for each in report.partitions} == {"rescaled"}
    assert orders.scan().to_arrow().sort_by("id").equals(before)
    files = orders.system_table("files").scan(["partition", "bucket"]).to_arrow().to_pylist()
    assert len({tuple(each.values()) for each in files}) == 8
    assert orders.rescale(bucket=4, executor=SparkExecutor(spark)).snapshot_ids == ()


def test_the_largest_comes_first(spark):
    sizes = [1, 5, 3, 4, 2]
    units = [_Sized(each << 28) for each in sizes]  # each is a task of its own
    executor = SparkExecutor(spark, at_once=1)

    done = [*executor.outcomes(_size_of, units, threading.Event())]

    assert done == sorted((unit.bytes for unit in units), reverse=True)


def test_a_unit_that_fails_stops_no_other(spark, orders, tmp_path):
    lost = sorted(tmp_path.rglob("dt=p0/bucket-0/data-*"))[0]
    lost.unlink()

    with pytest.raises(lake.LakeError, match=lost.name):
        orders.compact(executor=SparkExecutor(spark))

    kinds = [str(snapshot.commit_kind) for snapshot in orders.snapshots()]
    assert kinds == ["APPEND", "APPEND", "COMPACT"]


def test_what_is_stopped_ends_within_seconds_and_publishes_nothing(spark):
    stop = threading.Event()
    started = SparkExecutor(spark).outcomes(_sleeps, [60.0, 61.0, 62.0], stop)
    threading.Timer(1.0, stop.set).start()
    began = time.monotonic()

    assert [*started] == []

    assert time.monotonic() - began < 45, "a task slept on after it was stopped"
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


def test_an_error_of_the_work_ends_all(spark):
    with pytest.raises(Exception, match="no unit like this"):
        [*SparkExecutor(spark).outcomes(_refuses, ["a", "b"], threading.Event())]


def test_an_error_ends_also_what_begins_while_it_is_told(spark, monkeypatch):
    """The third unit begins when the first has failed, before the failure is reported."""
    add_tag = _TaggedJobs._add_tag

    def late(run):
        time.sleep(1)
        add_tag(run)

    monkeypatch.setattr(_TaggedJobs, "_add_tag", late)
    began = time.monotonic()
    units = [_Refused(1 << 28), *[_Slept(1 << 28)] * 3]  # the last of them never begins

    with pytest.raises(Exception, match="no unit like this"):
        [*SparkExecutor(spark, at_once=2).outcomes(_act, units, threading.Event())]

    assert time.monotonic() - began < 45, "a unit that began late was waited for"
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


def test_an_executor_is_a_name_or_has_outcomes(orders):
    with pytest.raises(lake.InvalidRequestError, match="executor must be one of serial, threads"):
        orders.compact(executor=object())


def test_a_commit_that_fails_leaves_no_file_of_the_tasks(spark, orders, warehouse, monkeypatch):
    from lakeformat.paimon.compact import commit

    before = data_files(warehouse)

    def refuse(*args, **kwargs):
        raise lake.UnavailableError("the store is away")

    monkeypatch.setattr(commit, "commit_messages", refuse)
    with pytest.raises(lake.UnavailableError, match="the store is away"):
        orders.compact(executor=SparkExecutor(spark))

    assert data_files(warehouse) == before


@dataclass(frozen=True)
class _Sized:
    bytes: int


@dataclass(frozen=True)
class _Refused:
    bytes: int


@dataclass(frozen=True)
class _Slept:
    bytes: int


def _act(unit):
    if isinstance(unit, _Slept):
        _sleeps(60)
    time.sleep(1)
    _refuses(unit)


def _size_of(unit):
    return unit.bytes


def _sleeps(seconds):
    time.sleep(seconds)
    return seconds


def _refuses(unit):
    raise ValueError(f"no unit like this: {unit}")
