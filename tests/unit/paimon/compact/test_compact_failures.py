"""Failed compactions: the failed part is named, everything else continues."""

from __future__ import annotations

import errno
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import UnavailableError
from lakeformat.paimon.compact import compact as compaction
from lakeformat.paimon.compact.compact import compact
from lakeformat.paimon.compact.run import run_unit
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.read.plan import plan_files
from lakeformat.storage import MemoryStorage
from lakeformat.tables.compact_progress import CompactProgress
from tests.keyed_rows import KeyedRows, listed


@pytest.fixture(params=["serial", "threads"])
def executor(request) -> str:
    return request.param


def three_days(**options: str) -> KeyedRows:
    """Two files in the bucket of each day."""
    keyed = KeyedRows(options, partitioned=True)
    for value in "xy":
        keyed.commit(*(("+I", day, 1, value) for day in "abc"))
    return keyed


def live(table: lake.Table) -> list[ManifestEntry]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return plan_files(table._handle, snapshot)


def data_files(keyed: KeyedRows) -> set[str]:
    storage, layout = keyed.place
    return {path.rpartition("/")[2] for path in storage.files(layout.root) if "/bucket-" in path}


def lose_a_file_of(keyed: KeyedRows, day: str) -> str:
    """The name of a missing data file."""
    storage, layout = keyed.place
    [path] = sorted(path for path in storage.files(layout.root) if f"/p={day}/" in path)[:1]
    storage.delete(path)
    return path.rpartition("/")[2]


def test_a_file_that_vanished_is_named_and_no_other_bucket_is_harmed(executor):
    keyed = three_days()
    lost = lose_a_file_of(keyed, "b")
    before = data_files(keyed)
    with pytest.raises(lake.CorruptTableError) as caught:
        keyed.table.compact(executor=executor)
    report = caught.value.report
    assert report is not None
    assert report.to_dict()["snapshot_ids"] == (3,)
    for part in ("partition p=b, bucket 0", "planned at snapshot 2", lost, "is missing"):
        assert part in str(caught.value)
    assert "In all: 2 buckets compacted, 1 failed, published as snapshot 3" in str(caught.value)
    assert sorted(listed(keyed.table.scan(where="p <> 'b'"))) == [("a", 1, "y"), ("c", 1, "y")]
    assert {e.file.file_name for e in live(keyed.table)} | before == data_files(keyed) | {lost}


def test_all_failures_are_counted(executor):
    keyed = three_days()
    for day in "abc":
        lose_a_file_of(keyed, day)
    with pytest.raises(
        lake.CorruptTableError, match=r"In all: 2 more buckets failed; 3 buckets failed, none"
    ):
        keyed.table.compact(executor=executor)


class FullDisk(MemoryStorage):
    """Takes no more data files of one partition."""

    full = ""

    @contextmanager
    def open_output(self, path):
        if self.full and self.full in path:
            raise UnavailableError(f"{self.uri(path)}: {errno.ENOSPC} no space left on device.")
        with super().open_output(path) as stream:
            yield stream


def test_a_full_disk_ends_the_units_that_meet_it(executor):
    storage = FullDisk(f"full-disk-{executor}")
    catalog = FileSystemCatalog(storage, "wh", Environment())
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t",
        [("p", "STRING NOT NULL"), ("k", "INT")],
        primary_key=["p", "k"],
        partition_by=["p"],
        options={"bucket": "1"},
    )
    for _ in range(2):
        table.write(pa.table({"p": ["a", "b"], "k": pa.array([1, 1], pa.int32())}))
    storage.full = "/p=a/"
    before = set(storage.files())
    with pytest.raises(
        UnavailableError, match=r"p=a, bucket 0 .* no space left on device\. In all"
    ):
        table.compact(executor=executor)
    assert [path for path in set(storage.files()) - before if "/p=a/" in path] == []
    assert len([e for e in live(table) if e.file.level == 5]) == 1
    storage.full = ""
    table.compact(executor=executor)
    assert {e.file.level for e in live(table)} == {5}


def test_an_interrupted_compaction_leaves_no_file(monkeypatch):
    keyed = three_days()
    before = data_files(keyed)

    def interrupted(units, **_):
        wait(units)  # all of them are done, and none is reported yet
        raise KeyboardInterrupt

    monkeypatch.setattr("lakeformat.executor.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        keyed.table.compact(executor="threads")
    assert data_files(keyed) == before


@pytest.mark.parametrize("keyed", [True, False])
def test_a_unit_nobody_waits_for_stops_between_two_batches(keyed):
    rows = KeyedRows(keyed=keyed)
    for value in "xyzxy":
        rows.commit(("+I", 1, value))
    before = data_files(rows)
    handle, [unit] = rows.table._handle, rows.table.plan_compaction().units
    given_up = replace(handle.environment, is_given_up=lambda: True)
    with pytest.raises(lake.LakeError, match="was cancelled"):
        run_unit(replace(handle, environment=given_up), unit)
    assert data_files(rows) == before


def test_another_number_of_buckets_does_not_disturb_a_compaction_of_the_old_ones():
    keyed = three_days()
    keyed.catalog.alter_table("shop.t", lake.set_option("bucket", "4"))
    keyed.table.compact()
    assert {entry.total_buckets for entry in live(keyed.table)} == {1}
    assert keyed.table.scan().count() == 3


def test_buckets_that_changed_between_plan_and_commit_are_a_conflict():
    keyed = three_days()
    unit = keyed.table.plan_compaction(where="p = 'a'").units[0]
    message = run_unit(keyed.table._handle, unit)
    wider = keyed.catalog.alter_table("shop.t", lake.set_option("bucket", "4"))
    rows = {"p": ["a"] * 9, "k": pa.array(range(9), pa.int32()), "v": ["z"] * 9}
    wider.write(pa.table(rows), overwrite={"p": "a"})
    with pytest.raises(lake.CommitConflictError, match="p=a"):
        wider.commit([message])
    wider.abort([message])
    assert wider.scan(where="p = 'a'").count() == 9


def test_a_bucket_that_was_overtaken_is_planned_again_alone():
    keyed = three_days()

    def rival(done: object) -> None:
        if not heard:
            keyed.table.compact(where="p = 'b'")
            keyed.commit(("+I", "b", 1, "z"))
        heard.append(done)

    heard: list[object] = []
    report = keyed.table.compact(executor="serial", on_progress=rival)
    said = [(each.partition, each.outcome) for each in report.buckets]
    assert sorted(said) == [
        ("p=a", "compacted"),
        ("p=b", "compacted"),
        ("p=b", "refused"),
        ("p=c", "compacted"),
    ]
    assert (report.rounds, report.groups_refused) == (2, 2)
    assert sorted(listed(keyed.table.scan())) == [("a", 1, "y"), ("b", 1, "z"), ("c", 1, "y")]
    assert keyed.table.plan_compaction().units == ()
    names = {e.file.file_name for s in keyed.table.snapshots() for e in files_of(keyed, s)}
    assert names == data_files(keyed), "the files of the refused unit are gone"


def test_a_bucket_that_is_overtaken_again_and_again_is_left_and_said_to_be():
    keyed = KeyedRows()
    for value in "xy":
        keyed.commit(("+I", 1, value))

    def rival(progress: CompactProgress) -> None:
        if progress.done:  # a unit is written and waits for its commit
            compact(keyed.table._handle)
            keyed.commit(("+I", 1, "z"))

    report = compact(keyed.table._handle, executor="serial", on_progress=rival)
    assert report.snapshot_ids == ()
    assert report.unfinished is not None
    assert "other commits changed the same files 10 times" in report.unfinished
    assert report.reason.endswith(report.unfinished)
    assert compact(keyed.table._handle).unfinished is None


def test_what_is_due_after_the_last_round_is_said(monkeypatch):
    monkeypatch.setattr(compaction, "_ROUNDS", 1)
    rows = KeyedRows({"compaction.min.file-num": "2"}, keyed=False)
    for number in range(2):
        rows.commit(("+I", number, "a"))
    report = rows.table.compact()
    assert report.unfinished == "buckets may still be due after 1 rounds: compact again"
    assert rows.table.compact().unfinished is None


def files_of(keyed: KeyedRows, snapshot: lake.Snapshot) -> list[ManifestEntry]:
    handle: TableHandle = keyed.table._handle
    return plan_files(handle, snapshot)


NULLS = {
    "v": ("BIGINT", pa.int64(), None, 1),
    "v.x": ("ROW<x INT>", pa.struct([("x", pa.int32())]), {"x": None}, {"x": 1}),
    "v.element": ("ARRAY<INT>", pa.list_(pa.int32()), [None], [1]),
    "v.value": ("MAP<INT, INT>", pa.map_(pa.int32(), pa.int32()), [(1, None)], [(1, 1)]),
}


def with_forbidden_null(path: str, keys: tuple[str, ...] = (), **options: str):
    """A catalog and its table, of which the row with id 1 has a null that is not allowed now."""
    catalog = FileSystemCatalog(MemoryStorage("nulls"), "wh")
    catalog.create_database("shop")
    kind, arrow, null, value = NULLS[path]
    columns = [("id", "BIGINT"), ("v", kind)]
    options = {"alter-column-null-to-not-null.disabled": "false", **options}
    table = catalog.create_table("shop.t", columns, primary_key=keys, options=options)
    for ids, content in (([1, 2], null), ([3, 4], value)):
        table.write(pa.table({"id": ids, "v": pa.array([content, value], arrow)}))
    changed = lake.update_column_nullability(tuple(path.split(".")), nullable=False)
    return catalog, catalog.alter_table("shop.t", changed)


@pytest.mark.parametrize("path", ["v", "v.x", "v.element", "v.value"])
@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_a_null_that_the_column_no_longer_allows_is_explained(path, kind):
    _, table = with_forbidden_null(path, ("id",), **{"bucket": "1", "file.format": kind})
    with pytest.raises(
        lake.InvalidRequestError,
        match=rf"column '{path}' is NOT NULL, but a stored row has a null .* nullable again with",
    ):
        table.compact(strategy="full")
    assert table.latest_snapshot().id == 2


def test_a_delete_explains_a_null_and_its_advice_helps():
    catalog, table = with_forbidden_null("v")
    with pytest.raises(lake.InvalidRequestError, match=r"column 'v' is NOT NULL, but a stored row"):
        table.delete("id = 2")
    assert table.scan().count() == 4
    table = catalog.alter_table("shop.t", lake.update_column_nullability("v", nullable=True))
    table.update("v IS NULL", {"v": 7})
    table = catalog.alter_table("shop.t", lake.update_column_nullability("v", nullable=False))
    table.delete("id = 2")
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 1, 7]
