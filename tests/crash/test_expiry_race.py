"""Snapshots in use expire at any moment: writers retry, readers get an error, none sees damage."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from tests.crash.interrupted import Interrupted, each_moment
from tests.crash.simulated import simulated
from tests.expired import unneeded
from tests.sampling import IS_WHOLE

LAYOUT = TableLayout("wh/shop.db/orders")
KEYED = {"primary_key": ["dt", "id"], "partition_by": ["dt"]}
TABLES = {
    "append": {"options": {"bucket": "1", "bucket-key": "id"}},
    "vectors": {
        "options": {
            "bucket": "-1",
            "deletion-vectors.enabled": "true",
            "compaction.min.file-num": "2",
        }
    },
    "plain": {"options": {"bucket": "-1"}},
    "keyed": {**KEYED, "options": {"bucket": "1", "changelog-producer": "input"}},
    "marked": {**KEYED, "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
    "dynamic": {**KEYED, "options": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}},
    "crossing": {
        "primary_key": ["id"],
        "partition_by": ["dt"],
        "options": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    },
}
NEW = pa.table({"dt": ["mon", "tue", "tue"], "id": [1, 20, 2], "n": [7, 7, 7]})
_names = itertools.count(1)


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(next(_names)))


def filled(name: str) -> MemoryStorage:
    """Four rows of two commits, compacted where there is a key, and one more commit."""
    storage = MemoryStorage(f"expired-meanwhile-{next(_names)}")
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("dt", "STRING"), ("id", "BIGINT"), ("n", "BIGINT")]
    table = catalog.create_table("shop.orders", columns, **TABLES[name])
    for ids in ([0, 1], [2, 3]):
        table.write(pa.table({"dt": ["mon", "tue"], "id": ids, "n": [0, 0]}))
    table.compact(executor="serial")
    if name == "vectors":
        table.delete("id = 1")
    table.write(pa.table({"dt": ["mon"], "id": [0], "n": [1]}))
    return storage


def compact_and_expire(storage) -> None:
    """Other writers commit, and the earlier newest snapshot expires."""
    opened(storage).write(pa.table({"dt": ["mon"], "id": [100], "n": [5]}))
    opened(storage).compact(executor="serial")
    opened(storage).expire_snapshots(retain_max=1, retain_min=1)


def replace_and_expire(storage) -> None:
    opened(storage).write(pa.table({"dt": ["mon"], "id": [100], "n": [5]}), overwrite={})
    opened(storage).expire_snapshots(retain_max=1, retain_min=1)


def content(storage) -> list[tuple]:
    return sorted(tuple(row.values()) for row in opened(storage).scan().to_arrow().to_pylist())


def interrupted(work, name: str, rival, prepare=lambda storage: None):
    """Storages in which ``rival`` happens before a call of ``work``: each order that differs."""
    start = filled(name)
    prepare(start)
    watched = Interrupted(start.copy(), 0, lambda: None)
    work(watched)
    yield from each_moment(start, watched.calls, rival)


def write(storage) -> None:
    opened(storage).write(NEW)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "rival"),
    [
        ("keyed", compact_and_expire),
        ("dynamic", compact_and_expire),
        ("dynamic", replace_and_expire),
        ("crossing", compact_and_expire),
    ],
)
def test_a_write_begins_again_where_what_it_built_on_expired(name, rival):
    outcomes = []
    for first, second in ((write, rival), (rival, write)):
        storage = filled(name)
        first(storage)
        second(storage)
        outcomes.append(content(storage))
    for storage, slept in interrupted(write, name, rival):
        write(slept)
        assert content(storage) in outcomes, f"at {slept.calls[-1]}"


@pytest.mark.parametrize("name", ["keyed", "dynamic", "crossing"])
def test_rows_that_come_once_are_published_or_to_be_written_again(name):
    """A retry cures it, and nothing is left of the failed try."""
    refused = 0

    def write_once(storage):
        opened(storage).write(iter([NEW]))

    for storage, slept in interrupted(write_once, name, replace_and_expire):
        try:
            write_once(slept)
        except lake.BucketsChangedError:
            refused += 1
            assert unneeded(opened(storage)) == set(), f"at {slept.calls[-1]}"
    if name == "keyed":
        assert refused == 0, "numbers of rows go on behind a newer snapshot"
    else:
        assert refused > 0 or not IS_WHOLE


def scan(table):
    return table.scan().to_arrow()


def count(table):
    return table.scan(where="n < 9").count()


def delta(table):
    return table.changes(0, mode="delta").to_arrow()


def changelog(table):
    return table.changes(0, mode="changelog").to_arrow()


def diff(table):
    return table.changes(1, mode="diff").to_arrow()


def planned(table):
    return table.scan(where="id = 1").explain()


def stream(table):
    return [each.to_arrow() for each in table.stream()]


def manifests(table):
    return table.system_table("manifests").scan().count()


def indexes(table):
    return table.system_table("table_indexes").scan().count()


READERS = [
    ("append", scan),
    ("append", delta),
    ("keyed", scan),
    ("keyed", count),
    ("keyed", changelog),
    ("keyed", diff),
    ("marked", scan),
    ("marked", planned),
    ("keyed", stream),
    ("keyed", manifests),
    ("vectors", indexes),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "read"), READERS, ids=lambda it: getattr(it, "__name__", it))
def test_a_reader_is_told_that_it_expired_and_reads_right_rows_otherwise(name, read):
    def work(storage):
        read(opened(storage))

    told = 0
    for _, slept in interrupted(work, name, replace_and_expire):
        try:
            work(slept)
        except lake.SnapshotExpiredError:
            told += 1
        except lake.NotFoundError as expired:
            if not re.search("expired|earliest", str(expired)):
                raise
    assert told > 0 or not IS_WHOLE


@pytest.mark.parametrize("name", ["keyed", "vectors"])
def test_health_begins_again_where_what_it_looked_at_expired(name):
    newer = 0
    for storage, slept in interrupted(lambda it: opened(it).health(), name, replace_and_expire):
        report = opened(slept).health()
        newest = opened(storage).latest_snapshot()
        assert newest is not None
        newer += report.snapshot_id == newest.id
    assert newer > (3 if IS_WHOLE else 0)


def test_a_tag_keeps_what_is_read_so_a_file_that_is_gone_is_damage():
    storage = filled("keyed")
    table = opened(storage)
    table.tags.create("kept")
    compact_and_expire(storage)
    assert table.scan(tag="kept").to_arrow().num_rows == 4
    for path in storage.files(LAYOUT.root):
        if "/bucket-" in path:
            storage.delete(path)
    with pytest.raises(lake.CorruptTableError, match="is missing"):
        table.scan(tag="kept").to_arrow()


def rescale(storage) -> None:
    opened(storage).rescale(bucket=3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["append", "keyed"])
def test_a_rescale_begins_again_where_what_it_read_expired(name):
    storage = filled(name)
    compact_and_expire(storage)
    expected, met = content(storage), 0
    for storage, slept in interrupted(rescale, name, unless_rescaled(compact_and_expire)):
        rescale(slept)
        rows = content(storage)
        if ("mon", 100, 5) in rows:
            met += 1
            assert rows == expected, f"at {slept.calls[-1]}"
    assert met > (10 if IS_WHOLE else 0)


def unless_rescaled(rival):
    """Rows for another number of buckets are refused once there is a new one."""

    def happens(storage) -> None:
        with suppress(lake.InvalidRequestError):
            rival(storage)

    return happens


def new_column(storage) -> None:
    """Rows with a column that did not exist at planning time."""
    catalog = FileSystemCatalog(storage, "wh", simulated(next(_names)))
    catalog.alter_table("shop.orders", lake.add_column("late", "BIGINT"))
    opened(storage).write(pa.table({"dt": ["mon"], "id": [100], "n": [5], "late": [9]}))


@pytest.mark.parametrize("name", ["append", "keyed"])
def test_a_rescale_keeps_the_values_of_a_column_that_came_meanwhile(name):
    met = 0
    for storage, slept in interrupted(rescale, name, unless_rescaled(new_column)):
        rescale(slept)
        rows = [row for row in opened(storage).scan().to_arrow().to_pylist() if row["id"] == 100]
        met += len(rows)
        assert [row["late"] for row in rows] == [9] * len(rows), f"at {slept.calls[-1]}"
    assert met > (10 if IS_WHOLE else 0)


def delete_and_expire(storage) -> None:
    """Every data file is kept, but their deletion vectors are in another file."""
    opened(storage).delete("id = 2")
    opened(storage).expire_snapshots(retain_max=1, retain_min=1)


def compact(storage) -> None:
    opened(storage).compact(executor="serial")


def rewrite_indexes(storage) -> None:
    opened(storage).rewrite_file_indexes()


def merge_manifests(storage) -> None:
    opened(storage).compact_manifests()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rival", [delete_and_expire, compact_and_expire])
@pytest.mark.parametrize("work", [compact, rewrite_indexes, merge_manifests])
def test_upkeep_begins_again_where_what_it_read_expired(work, rival):
    def indexed(storage) -> None:
        option = lake.set_option("file-index.bloom-filter.columns", "id")
        catalog = FileSystemCatalog(storage, "wh", simulated(next(_names)))
        catalog.alter_table("shop.orders", option)

    storage = filled("vectors")
    rival(storage)
    expected = content(storage)
    unknown = 0
    for storage, slept in interrupted(work, "vectors", rival, indexed):
        try:
            work(slept)
        except lake.CommitOutcomeUnknownError:
            unknown += 1  # published and expired before it was looked at: it says to look
        assert content(storage) == expected, f"at {slept.calls[-1]}"
    assert unknown <= (work is merge_manifests), "no file of it tells whether it was built on"


def analyzed_rows(storage) -> int:
    return opened(storage).analyze("all").statistics.merged_record_count


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rival", [delete_and_expire, compact_and_expire])
def test_what_is_analyzed_is_looked_at_again_where_it_expired(rival):
    before = len(content(filled("vectors")))
    met = unknown = 0
    for storage, slept in interrupted(analyzed_rows, "vectors", rival):
        try:
            found = analyzed_rows(slept)
        except lake.CommitOutcomeUnknownError:
            unknown += 1  # published and expired before it was looked at: it says to look
            continue
        assert found in (before, len(content(storage))), f"at {slept.calls[-1]}"
        met += found != before
    assert met > (3 if IS_WHOLE else 0)
    assert unknown < 2


@pytest.mark.parametrize("rival", [delete_and_expire, compact_and_expire])
def test_no_manifest_is_missed_where_its_snapshot_expired(rival):
    def take_out(storage) -> None:
        table = opened(storage)
        for report in (table.remove_missing_manifests(), table.remove_missing_manifests(False)):
            assert (report.missing_manifests, report.published) == ((), None)

    for storage, slept in interrupted(take_out, "vectors", rival):
        take_out(slept)
        assert len(opened(storage).snapshots()) == 1, f"at {slept.calls[-1]}"


def test_a_manifest_that_is_gone_is_taken_out_of_no_newer_snapshot():
    """Other writers commit and expire the snapshot that named it: their files are kept."""

    def lose_one(storage) -> None:
        handle = opened(storage)._handle
        [lost] = manifests_of(storage, LAYOUT, opened(storage).latest_snapshot(), ListKind.DELTA)
        storage.delete(handle.layout.manifest(lost.file_name))

    def take_out(storage) -> None:
        opened(storage).remove_missing_manifests(dry_run=False)

    def add_and_expire(storage) -> None:
        for number in (100, 101):
            opened(storage).write(pa.table({"dt": ["mon"], "id": [number], "n": [5]}))
        for number in [each.id for each in opened(storage).snapshots()][:-1]:
            storage.delete(LAYOUT.snapshot(number))  # as another engine's expiry ends

    refused = 0
    for storage, slept in interrupted(take_out, "plain", add_and_expire, lose_one):
        try:
            take_out(slept)
        except (lake.CommitConflictError, lake.CommitOutcomeUnknownError):
            refused += 1
        take_out(storage)
        found = [row[1] for row in content(storage)]
        assert sorted(found) == [0, 1, 2, 3, 100, 101], f"at {slept.calls[-1]}"
    assert refused > 0 or not IS_WHOLE


def old_snapshot_whose_files_go(expiry_ends: bool):
    """A scan of an old snapshot, as another engine's expiry removes it: its data files first."""
    storage = filled("keyed")
    replace_and_keep(storage)
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if expiry_ends and len(waited) == 3:
            storage.delete(LAYOUT.snapshot(4))

    table = load_table(storage, LAYOUT, replace(simulated(), sleep_seconds=sleep))
    scan = table.scan(snapshot=4)
    live = {entry.file.file_name for entry in plan_files(table._handle, table.latest_snapshot())}
    for path in storage.files(LAYOUT.root):
        if "/bucket-" in path and path.rpartition("/")[2] not in live:
            storage.delete(path)
    return scan, waited


def replace_and_keep(storage) -> None:
    opened(storage).write(pa.table({"dt": ["mon"], "id": [100], "n": [5]}), overwrite={})


def test_a_reader_of_what_another_engine_is_expiring_is_told_so():
    scan, waited = old_snapshot_whose_files_go(expiry_ends=True)
    with pytest.raises(lake.SnapshotExpiredError, match=r"snapshot 4 .* has expired .*is missing"):
        scan.to_arrow()
    assert len(waited) == 3


def test_an_old_snapshot_that_stays_without_its_files_is_damage():
    scan, waited = old_snapshot_whose_files_go(expiry_ends=False)
    with pytest.raises(lake.CorruptTableError, match="is missing"):
        scan.to_arrow()
    assert 1 < sum(waited) < 10


def test_a_file_of_the_newest_snapshot_that_is_gone_is_damage_at_once():
    storage = filled("keyed")
    waited: list[float] = []
    table = load_table(storage, LAYOUT, replace(simulated(), sleep_seconds=waited.append))
    for path in storage.files(LAYOUT.root):
        if "/bucket-" in path:
            storage.delete(path)
    with pytest.raises(lake.CorruptTableError, match="is missing"):
        table.scan().to_arrow()
    assert waited == []
