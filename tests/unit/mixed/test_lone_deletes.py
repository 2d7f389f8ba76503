"""Deletes of keys in nodes without rows delete nothing: an optimizing records them as merged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.unit.mixed.aged_table import COLUMNS, HOUR, AgedTable
from tests.unit.mixed.named_rows import optimized


@pytest.fixture
def aged(tmp_path: Path) -> AgedTable:
    return AgedTable(tmp_path)


def test_lone_deletes_are_recorded_as_merged_and_removed_later(aged):
    aged.write((1, "x", "a"))
    aged.write((9, "y", "gone"), kind="-D")
    report = aged.merge()
    assert optimized(aged.table) == {"p=x": 1, "p=y": 2}
    assert "full optimizing" in report.reason
    assert aged.table.health().deletes.equality_delete_files == 0
    assert aged.merge().snapshot_ids == ()  # nothing is left to record
    aged.write((8, "y", "gone"), kind="-D")
    report = aged.merge()
    assert report.reason.startswith("deletes that match no row are recorded as merged in 1")
    assert len(report.snapshot_ids) == 1
    aged.now += 12 * HOUR
    aged.set({"change.data.ttl.minutes": "60"})
    aged.table.expire_snapshots()
    assert aged.change_files() == []
    assert aged.rows() == [(1, "x", "a")]


def table_with_one_row(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    columns = [("k", "BIGINT NOT NULL")]
    table = catalog.create_table("db.t", columns, format="mixed", primary_key=["k"])
    table.write(pa.table({"k": [1]}))
    return table


def test_lone_deletes_of_a_node_wait_for_the_other_changes_of_their_partition(tmp_path):
    """Node 0 has the row, node 1 only the delete; the record is that of the whole partition."""
    table = table_with_one_row(tmp_path)
    table.compact(strategy="full", executor="serial")
    table.write(pa.table({"k": [2]}), kinds=["-D"])
    table.write(pa.table({"k": [1]}))
    table.compact(strategy="full", executor="serial")
    assert optimized(table) == {"": 3}
    table.write(pa.table({"k": [2]}), kinds=["-D"])
    table.compact(strategy="full", executor="serial")
    assert optimized(table) == {"": 4}
    assert table.scan().to_arrow().to_pylist() == [{"k": 1}]


def test_lone_deletes_are_merged_with_older_changes_of_their_partition(tmp_path):
    """Key 2 is in another node than the row."""
    table = table_with_one_row(tmp_path)
    table.write(pa.table({"k": [2]}), kinds=["-D"])
    table.compact(strategy="full", executor="serial")
    assert optimized(table) == {"": 2}
    table.write(pa.table({"k": [2]}))  # a newer row is not merged by this record
    assert table.scan().count() == 2
    table.compact(strategy="full", executor="serial")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    assert not catalog.detach_table("db.t").merged
    assert catalog.table("db.t").scan().count() == 2


def test_lone_deletes_do_not_fill_an_optimizing_for_ever(aged):
    """They count against the most files of an optimizing, so later changes were never merged."""
    aged.set({"self-optimizing.max-file-count": "2"})
    for key in range(4):
        aged.write((key, "y", "gone"), kind="-D")
    aged.write((1, "x", "a"))
    for _ in range(3):
        aged.merge()
    assert optimized(aged.table) == {"p=x": 5, "p=y": 4}


def test_a_minor_compaction_records_many_lone_deletes(aged):
    aged.set({"self-optimizing.minor.trigger.file-count": "2"})
    aged.write((1, "y", "gone"), kind="-D")
    assert aged.table.compact(strategy="minor", executor="serial").snapshot_ids == ()
    aged.write((2, "y", "gone"), kind="-D")
    [step] = [e for e in aged.table.maintain(dry_run=True).steps if e.step == "compact"]
    assert "would publish a snapshot: deletes that match no row" in step.reason
    assert aged.table.compact(strategy="minor", executor="serial").snapshot_ids
    assert optimized(aged.table) == {"p=y": 2}


def test_lone_deletes_that_are_newer_than_an_open_batch_wait(aged):
    with aged.table.begin() as batch:
        aged.write((1, "y", "gone"), kind="-D")
        batch._begun.lease._write(aged.now + HOUR)
        assert aged.merge().snapshot_ids == ()
        batch.write(pa.table([[1], ["y"], ["late"]], schema=COLUMNS))
    aged.merge()
    assert aged.rows() == []
