"""Batches of streams are committed once, however late they are repeated; runs are recorded."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CommitUndecidableError, InvalidRequestError
from lakeformat.iceberg.table.table import IcebergTable
from tests.crash.simulated import NOW_MILLIS, simulated
from tests.unit.iceberg.write.made_tables import ids_of, made_table, stored_files

DIRECTORY = "shop/orders/_lake"


@pytest.fixture
def orders(storage) -> IcebergTable:
    """A table whose clock gains an hour at each look."""
    hours = itertools.count(NOW_MILLIS, 3_600_000)
    world = replace(simulated(), now_millis=hours.__next__)
    return IcebergTable(replace(made_table(storage), environment=world))


def batch(number: int) -> lake.CommitId:
    return lake.CommitId("spark-a/b", number)


def write(table: IcebergTable, number: int) -> bool:
    """Write the batch, unless it is published; return False then."""
    with table.stream_batch(batch(number)) as commit:
        if commit is not None:
            table.write(pa.table({"id": pa.array([number], pa.int64())}), commit=commit)
        return commit is not None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_batch_is_published_once(storage, version):
    table = IcebergTable(made_table(storage, version))
    assert [write(table, number) for number in (0, 0, 1, 1, 0)] == [True, False, True, False, False]
    assert ids_of(table._handle) == [0, 1]
    assert stored_files(storage, DIRECTORY) == {f"{DIRECTORY}/stream/4f2b/stream-spark-a%2Fb"}


def dies_after_the_commit(table: IcebergTable, number: int) -> None:
    started = table.stream_batch(batch(number))
    commit = started.__enter__()  # the process never leaves the block
    table.write(pa.table({"id": pa.array([number], pa.int64())}), commit=commit)


def test_a_batch_whose_process_died_is_found_although_newer_snapshots_expired(orders):
    write(orders, 0)
    dies_after_the_commit(orders, 1)
    orders.write(pa.table({"id": pa.array([9], pa.int64())}))
    report = orders.expire_snapshots(older_than="1 ms", retain_min=1)
    assert not report.snapshots  # the consumer of the stream keeps the batch
    assert not write(orders, 1)
    assert ids_of(orders._handle) == [0, 1, 9]
    assert orders.consumers.list() == []


def test_a_batch_that_may_have_expired_is_refused(orders):
    write(orders, 0)
    dies_after_the_commit(orders, 1)
    orders.consumers.clear()
    orders.write(pa.table({"id": pa.array([9], pa.int64())}))
    orders.expire_snapshots(older_than="1 ms", retain_min=1)
    with pytest.raises(CommitUndecidableError):
        write(orders, 1)


def test_an_older_batch_is_refused_after_a_newer_one(orders):
    write(orders, 5)
    with pytest.raises(InvalidRequestError, match="arrived after commit 5 of the same user"):
        write(orders, 4)


def test_a_first_try_that_fails_leaves_no_record(orders, storage):
    with pytest.raises(ZeroDivisionError), orders.stream_batch(batch(0)):
        raise ZeroDivisionError
    assert stored_files(storage, DIRECTORY) == set()


def test_a_success_is_recorded_by_its_user(orders):
    orders.write(pa.table({"id": pa.array([1], pa.int64())}))
    record = lake.RunRecord(user="dag/run", identifier=1, snapshot_id=7 << 50, mark=0)
    orders.record_run(record)
    assert orders.find_run("dag/run") == record
    assert orders.find_run("other") is None
