"""The health of tables that Java wrote: numbers that agree with its plans, and the reasons."""

from __future__ import annotations

from typing import Any

import pytest

import lakeformat as lake
from tests.golden.iceberg import ICEBERG_TABLES, iceberg_table

DAY_MILLIS = 24 * 60 * 60 * 1000


def health(name: str, days_later: int = 0, **options: Any) -> lake.IcebergHealthReport:
    last = iceberg_table(name).expected["snapshots"][-1]["timestamp_ms"]
    clock = lake.Environment(now_millis=lambda: last + days_later * DAY_MILLIS)
    table = lake.open_table(iceberg_table(name).location, environment=clock)
    assert isinstance(table, lake.IcebergTable)
    return table.health(**options)


def findings(report: lake.IcebergHealthReport) -> list[str]:
    return [each.finding for each in report.reasons]


@pytest.mark.parametrize("name", sorted({*ICEBERG_TABLES} - {"equality_deletes"}))
def test_files_with_deletes_are_those_that_a_scan_reads_with_deletes(name):
    table = lake.open_table(iceberg_table(name).location)
    found = table.health(time_travel=False)
    splits = table.scan().splits()
    assert found.files.files == len(splits)
    assert found.deletes.files_with_deletes == sum(bool(each.deletes) for each in splits)
    applied = {(each.path, each.content_offset) for split in splits for each in split.deletes}
    deletes = found.deletes
    listed = (
        deletes.position_delete_files + deletes.deletion_vectors + deletes.equality_delete_files
    )
    assert listed - deletes.dangling_files == len(applied)


@pytest.mark.parametrize("name", ["mor_position_deletes", "v3_deletion_vectors"])
def test_hidden_rows_are_the_rows_that_a_scan_leaves_out(name):
    found = health(name)
    read = lake.open_table(iceberg_table(name).location).scan().count()
    assert found.files.rows - found.deletes.hidden_rows == read


def test_many_small_files_are_a_reason_to_rewrite_them():
    found = health("many_files")
    assert (found.verdict, found.score) == ("degraded", 89)
    assert (found.files.small_files, found.files.partitions_due) == (200, 1)
    [reason] = found.reasons
    assert reason.finding.startswith("200 of 200 data files, with ")
    assert reason.advice.startswith("lake compact file:///")


def test_the_partition_with_most_small_files_is_first():
    found = health("mor_position_deletes")
    assert [each.partition for each in found.worst_partitions] == ["p=x", "p=y"]
    assert [each.files for each in found.worst_partitions] == [4, 4]
    assert findings(found) == ["3 data files each have at least 30% deleted rows"]


def test_equality_deletes_that_every_read_compares_are_a_reason():
    found = health("equality_deletes")
    assert (found.deletes.equality_delete_files, found.deletes.equality_keys) == (3, 5)
    assert found.deletes.files_with_deletes == 3  # a scan compares bounds, too, and finds two
    [reason] = found.reasons
    assert reason.finding == "each read compares rows with 5 keys of 3 equality delete files"
    assert reason.advice.startswith("lake compact file:///")


def test_a_rewritten_table_is_healthy_and_keeps_the_old_files_for_time_travel():
    found = health("rewritten")
    assert (found.verdict, found.score, found.reasons) == ("healthy", 100, ())
    assert (found.storage.time_travel_files, found.storage.live_bytes) == (10, 2680)
    assert health("rewritten", time_travel=False).storage.time_travel_files is None


def test_snapshots_beyond_their_retention_are_a_reason_to_expire_them():
    young, old = health("rewritten", 4), health("rewritten", 6)
    assert (young.snapshots.count, young.snapshots.overdue, young.reasons) == (13, 0, ())
    assert old.snapshots.overdue == 12
    assert findings(old) == ["12 of 13 snapshots are beyond their retention, and keep their files"]
    assert old.score_parts.history == -19


def test_a_tag_keeps_its_snapshot_whatever_its_age():
    found = health("expired", 400)
    assert (found.snapshots.count, found.snapshots.tags, found.snapshots.overdue) == (3, 1, 1)
    assert found.reasons == ()


def test_unreferenced_files_are_refused_with_what_lists_them():
    with pytest.raises(
        lake.UnsupportedError,
        match=r"unknown=True .* `lake orphans \S+` or table\.remove_orphans\(\)",
    ):
        health("many_files", unknown=True)
