"""Manifests merged on demand: fewer, with the same files, and none where nothing is gained."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.commit import compact_manifests as module
from lakeformat.paimon.commit.compact_manifests import pick_all_manifests
from lakeformat.paimon.commit.manifest_merge import MergeLimits
from lakeformat.paimon.metadata.manifest_list import ManifestMeta, manifests_of
from lakeformat.paimon.metadata.simple_stats import EMPTY_STATS
from lakeformat.paimon.read.plan import plan_files

LIMITS = MergeLimits(100, 200, 30)


@pytest.fixture
def table(tmp_path) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT"), ("dt", "STRING")], partition_by=["dt"]
    )
    for number in range(5):
        table.write(pa.table({"id": [number], "dt": [f"day-{number % 2}"]}))
    return table


def manifests(table: lake.Table) -> list[ManifestMeta]:
    handle = table._handle
    return manifests_of(handle.storage, handle.layout, table.latest_snapshot())


def files(table: lake.Table) -> list[str]:
    return sorted(e.file.file_name for e in plan_files(table._handle, table.latest_snapshot()))


def test_small_manifests_become_one_and_the_files_are_the_same(table):
    before, rows = files(table), table.scan().count()
    report = table.compact_manifests()
    assert (report.manifests_before, report.manifests_after, report.snapshot_id) == (5, 1, 6)
    assert report.bytes_after < report.bytes_before
    assert len(manifests(table)) == 1
    assert (files(table), table.scan().count()) == (before, rows)
    snapshot = table.latest_snapshot()
    assert snapshot.commit_kind is lake.CommitKind.COMPACT
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (5, 0)


def test_deleted_files_are_dropped_from_manifests(table):
    table.drop_partitions([{"dt": "day-0"}])
    assert any(each.num_deleted_files for each in manifests(table))
    table.compact_manifests()
    [left] = manifests(table)
    assert (left.num_added_files, left.num_deleted_files) == (2, 0)


def test_of_a_table_that_was_emptied_no_manifest_is_left(table):
    table.truncate()
    assert table.compact_manifests().manifests_after == 0
    assert table.scan().count() == 0


def test_a_second_time_makes_no_snapshot(table):
    table.compact_manifests()
    report = table.compact_manifests()
    assert (report.snapshot_id, report.manifests_before) == (None, 1)
    assert table.latest_snapshot().id == 6


def test_a_dry_run_says_how_many_and_changes_nothing(table):
    report = table.compact_manifests(dry_run=True)
    assert (report.dry_run, report.manifests_merged, report.snapshot_id) == (True, 5, None)
    assert table.latest_snapshot().id == 5


def test_where_another_merges_first_no_empty_snapshot_is_made(table, monkeypatch):
    def published(handle, merging):
        monkeypatch.setattr(module, "_publish", publish)
        lake.open_table(table.location).compact_manifests()
        return publish(handle, merging)

    publish = module._publish
    monkeypatch.setattr(module, "_publish", published)
    assert table.compact_manifests().snapshot_id is None
    assert table.latest_snapshot().id == 6


def test_a_table_without_a_snapshot_has_nothing_to_merge(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.empty", [("id", "BIGINT")])
    assert table.compact_manifests().snapshot_id is None


def test_statistics_and_watermark_stay(table):
    table.write(pa.table({"id": [9], "dt": ["day-0"]}), watermark=77)
    table.analyze()
    before = table.latest_snapshot()
    table.compact_manifests()
    after = table.latest_snapshot()
    assert (after.statistics, after.watermark) == (before.statistics, before.watermark)


def meta(size: int, deleted: int) -> ManifestMeta:
    return ManifestMeta(
        file_name=f"manifest-{size}-{deleted}",
        file_size=size,
        num_added_files=1,
        num_deleted_files=deleted,
        partition_stats=EMPTY_STATS,
        schema_id=0,
    )


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 1)), max_size=12))
def test_what_is_picked_gets_fewer_or_loses_deletes(sizes):
    found = [meta(*each) for each in sizes]
    merge = pick_all_manifests(found, LIMITS)
    deletes = any(each.num_deleted_files for each in found)
    if merge is None:
        assert not deletes
        small = [each.file_size < LIMITS.target_size_bytes for each in found]
        assert not any(a and b for a, b in pairwise(small))
        return
    assert merge.is_full == deletes
    picked = {at for start, end in merge.runs for at in range(start, end)}
    assert deletes or all(end - start > 1 for start, end in merge.runs)
    assert all(at in picked for at, each in enumerate(found) if each.num_deleted_files)
