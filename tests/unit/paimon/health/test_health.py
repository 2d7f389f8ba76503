"""``table.health()``: facts about files, snapshots and bytes, and what to do about them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.paimon.health import unknown
from lakeformat.paimon.health.health_report import UnknownFiles
from lakeformat.paimon.metadata.tag import Tag, create_tag
from lakeformat.tables.health.verdict import Verdict
from spark_jobs import health as health_job
from tests.golden.foreign import unpack_foreign
from tests.rewriting import rewrite_entries

COLUMNS = [("id", "BIGINT"), ("dt", "STRING")]
DAY_SECONDS = 24 * 60 * 60


class Warehouse:
    """Tables by what they are made of, and files on a local disk that can be counted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = [SYSTEM.now_millis()]
        environment = replace(SYSTEM, now_millis=lambda: self.clock[0])
        self.catalog = lake.open_catalog(str(root), environment=environment)
        self.catalog.create_database("shop")

    def table(self, name: str = "orders", **options: str) -> lake.Table:
        return self.catalog.create_table(f"shop.{name}", COLUMNS, options=options)

    def partitioned(self, **options: str) -> lake.Table:
        return self.catalog.create_table(
            "shop.orders", COLUMNS, partition_by=["dt"], options=options
        )

    def keyed(self, buckets: int = 1, **options: str) -> lake.Table:
        return self.catalog.create_table(
            "shop.orders", COLUMNS, primary_key=["id"], options={"bucket": str(buckets), **options}
        )

    def data_bytes(self) -> int:
        """All bytes below directories of buckets."""
        return sum(path.stat().st_size for path in self.root.rglob("bucket-*/*"))


@pytest.fixture
def warehouse(tmp_path) -> Warehouse:
    return Warehouse(tmp_path)


def rows(*ids: int, dt: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "dt": [dt] * len(ids)})


def findings(table: lake.Table, **asked: bool) -> list[str]:
    return [str(reason) for reason in table.health(**asked).reasons]


def test_a_table_nobody_has_written_to_is_empty(warehouse):
    report = warehouse.table().health(unknown=True)
    assert (report.verdict, report.snapshot_id, report.score) == (Verdict.EMPTY, None, 100)
    assert report.files.files == report.snapshots.count == report.storage.live_bytes == 0
    assert report.reasons == report.worst_buckets == ()


def test_a_few_files_are_healthy(warehouse):
    table = warehouse.table()
    for number in range(3):
        table.write(rows(number))
    report = table.health()
    assert (report.verdict, report.reasons, report.table) == (Verdict.HEALTHY, (), "shop.orders")
    assert (report.files.files, report.files.rows, report.files.buckets) == (3, 3, 1)
    assert report.storage.live_bytes == warehouse.data_bytes()
    assert report.storage.time_travel_bytes == 0
    assert report.storage.unknown is None


def test_small_files_that_a_compaction_would_pick_are_a_reason(warehouse):
    table = warehouse.table()
    for number in range(5):
        table.write(rows(number))
    report = table.health()
    assert report.verdict is Verdict.DEGRADED
    assert report.files.small_files == 5
    assert report.files.small_bytes == warehouse.data_bytes()
    [reason] = report.reasons
    assert "5 of 5 files" in reason.finding
    assert reason.advice == "lake compact shop.orders"


def test_files_that_are_large_enough_are_none(warehouse):
    table = warehouse.table(**{"target-file-size": "1 b"})
    for number in range(9):
        table.write(rows(number))
    report = table.health()
    assert (report.verdict, report.files.small_files, report.score) == (Verdict.HEALTHY, 0, 100)


def test_the_partition_with_most_small_files_comes_first(warehouse):
    table = warehouse.partitioned()
    table.write(rows(1, dt="a"))
    for number in range(6):
        table.write(rows(number, dt="b"))
    report = table.health()
    assert [(worst.partition, worst.small_files) for worst in report.worst_buckets] == [
        ("dt=b", 6),
        ("dt=a", 1),
    ]
    assert (report.files.partitions, report.files.buckets_due) == (2, 1)
    assert "bucket 0 of partition dt=b has the most, 6" in report.reasons[0].finding


def test_only_the_worst_buckets_are_listed_and_all_are_counted(warehouse):
    table = warehouse.partitioned()
    table.write(pa.concat_tables([rows(1, dt=f"{day:02}") for day in range(30)]))
    report = table.health()
    assert (len(report.worst_buckets), report.files.buckets) == (10, 30)


def test_sorted_runs_are_the_files_of_level_0_and_the_levels_above(warehouse):
    table = warehouse.keyed()
    messages = []
    for number in range(4):
        writer = table.new_writer()
        writer.write(rows(number))
        messages += writer.prepare()
    table.commit(messages)
    levels = iter([5, 5, 4, 0])
    rewrite_entries(
        table, lambda entry: replace(entry, file=replace(entry.file, level=next(levels)))
    )
    report = table.health(time_travel=False)
    assert report.files.most_sorted_runs == 3
    assert report.files.level_0_files == 1
    [bucket] = report.worst_buckets
    assert (bucket.sorted_runs, bucket.level_0_files, bucket.files) == (3, 1, 4)


def test_as_many_runs_as_start_a_compaction_are_a_reason_and_more_a_severe_one(warehouse):
    table = warehouse.keyed(buckets=2, **{"num-sorted-run.compaction-trigger": "2"})
    table.write(rows(1))
    assert table.health().verdict is Verdict.HEALTHY
    table.write(rows(1))
    report = table.health()
    assert report.verdict is Verdict.DEGRADED
    assert "1 of 1 bucket has 2 or more sorted runs; bucket 0" in report.reasons[0].finding
    for _ in range(3):
        table.write(rows(1))
    assert table.health().verdict is Verdict.UNHEALTHY


def test_how_many_runs_are_severe_may_be_said(warehouse):
    options = {"num-sorted-run.compaction-trigger": "2", "num-sorted-run.stop-trigger": "3"}
    table = warehouse.keyed(**options)
    for verdict in (Verdict.HEALTHY, Verdict.DEGRADED, Verdict.UNHEALTHY):
        table.write(rows(1))
        assert table.health().verdict is verdict


def test_a_single_run_is_never_too_many(warehouse):
    table = warehouse.keyed(**{"num-sorted-run.compaction-trigger": "1"})
    for _ in range(2):
        table.write(rows(1))
    assert table.health().verdict is Verdict.DEGRADED
    table.compact()
    assert table.health().reasons == ()


def test_rows_that_only_delete_others_are_counted(warehouse):
    table = warehouse.keyed()
    table.write(rows(1, 2, 3, 4))
    table.write(rows(1, 2), kinds=["-D", "-D"])
    report = table.health()
    assert (report.deletes.delete_rows, report.deletes.ratio) == (2, 2 / 6)
    [reason] = report.reasons
    assert reason.finding.startswith("2 of 6 rows in files are delete rows")
    assert reason.advice == "lake compact shop.orders --strategy full"


def test_the_score_of_a_keyed_table_weighs_runs_by_its_trigger(warehouse):
    """Two files of one bucket and trigger 2 are as many as it gets, and a third of them deletes."""
    table = warehouse.keyed(**{"num-sorted-run.compaction-trigger": "2", "target-file-size": "1 b"})
    table.write(rows(1, 2, 3, 4))
    table.write(rows(1, 2), kinds=["-D", "-D"])
    parts = table.health().score_parts
    assert (parts.small_files, parts.rows_to_merge, parts.hidden_rows) == (40, 0, 20)


def test_rows_that_no_read_sees_before_a_compaction_are_a_reason(warehouse):
    table = warehouse.keyed(**{"merge-engine": "first-row"})
    table.write(rows(1, 2))
    [reason] = table.health().reasons
    assert "batch reads do not see 2 rows in 1 file of level 0" in reason.finding


def test_bytes_that_only_older_snapshots_need_are_told_apart(warehouse):
    table = warehouse.table(**{"target-file-size": "1 b"})
    table.write(rows(*range(1000)))
    before = warehouse.data_bytes()
    table.write(rows(1), overwrite={})
    report = table.health()
    assert report.storage.time_travel_bytes == before
    assert report.storage.live_bytes == warehouse.data_bytes() - before
    assert report.reasons == ()  # the newest snapshots stay by the table's own options


def test_a_file_that_comes_and_goes_between_two_snapshots_is_found(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    table.write(rows(2), overwrite={})
    table.write(rows(3), overwrite={})
    storage = table.health().storage
    assert (storage.time_travel_files, storage.live_bytes + storage.time_travel_bytes) == (
        2,
        warehouse.data_bytes(),
    )


def test_a_tag_keeps_the_files_of_a_snapshot_that_has_expired(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    handle = table._handle
    create_tag(handle.storage, handle.layout, Tag("kept", table.latest_snapshot()))
    table.write(rows(2), overwrite={})
    handle.storage.delete(handle.layout.snapshot(1))
    report = table.health(unknown=True)
    assert (report.storage.time_travel_files, report.snapshots.tags) == (1, 1)
    assert report.storage.unknown.files == 0


def test_a_branch_keeps_what_its_snapshots_need(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    root = warehouse.root / "shop.db" / "orders"
    for kind, name in (("schema", "schema-0"), ("snapshot", "snapshot-1")):
        (root / "branch/branch-dev" / kind).mkdir(parents=True)
        (root / "branch/branch-dev" / kind / name).write_bytes((root / kind / name).read_bytes())
    warehouse.catalog.table("shop.orders$branch_dev").write(rows(2))
    main = table.health(unknown=True)
    dev = warehouse.catalog.table("shop.orders$branch_dev").health(unknown=True)
    assert (main.files.files, main.storage.time_travel_files, main.snapshots.branches) == (1, 1, 1)
    assert (dev.files.files, dev.storage.time_travel_files) == (2, 0)
    assert dev.table == "shop.orders$branch_dev"
    assert main.storage.unknown.files == dev.storage.unknown.files == 0


def test_files_that_nothing_refers_to_are_unknown_and_a_reason_once_they_are_old(warehouse):
    table = warehouse.partitioned()
    table.write(rows(1))
    lost = "manifest/manifest-00000000-0000-0000-0000-000000000000-0"
    for age, path in ((0, "dt=a/bucket-0/new"), (2 * DAY_SECONDS, lost)):
        orphan = warehouse.root / "shop.db" / "orders" / path
        orphan.write_bytes(b"orphan")
        moment = warehouse.clock[0] / 1000 - age
        os.utime(orphan, (moment, moment))
    report = table.health(unknown=True)
    assert report.storage.unknown == UnknownFiles(files=2, bytes=12, old_files=1, old_bytes=6)
    assert [r.finding for r in report.reasons] == [
        "nothing refers to 1 file with 6 B, last changed a day or more before the newest commit: "
        "probably a writer that died left them"
    ]


@pytest.mark.parametrize("count", [1, 5])
def test_files_that_are_gone_are_named(warehouse, count):
    table = warehouse.partitioned(**{"compaction.min.file-num": "9"})
    for number in range(count):
        table.write(rows(number))
    assert table.health(unknown=True).storage.lost_files == ()
    data = sorted((warehouse.root / "shop.db/orders/dt=a/bucket-0").iterdir())
    for path in data:
        path.unlink()
    report = table.health(unknown=True)
    assert report.storage.lost_files == tuple(f"file://{path}" for path in data)
    assert report.verdict is Verdict.UNHEALTHY
    said = report.reasons[0].finding
    assert said.startswith(f"{count} file{'s' if count > 1 else ''} of the newest snapshot")
    assert [path.name in said for path in data] == [number < 3 for number in range(count)]
    assert table.health().storage.lost_files is None


def test_files_that_are_cut_short_are_named_too(warehouse):
    """Files of rows, and files of deletion vectors."""
    table = warehouse.table(**{"deletion-vectors.enabled": "true"})
    table.write(rows(1, 2))
    table.delete("id = 1")
    whole = [*warehouse.root.rglob("shop.db/orders/bucket-0/*"), *warehouse.root.rglob("index/*")]
    assert len(whole) == 2
    for path in whole:
        path.write_bytes(path.read_bytes()[:-1])
    lost = table.health(unknown=True).storage.lost_files
    assert lost == tuple(sorted(f"file://{path}" for path in whole))


@pytest.mark.parametrize("damage", ["gone", "cut short"])
def test_changelog_files_that_readers_need_are_named(warehouse, damage):
    table = warehouse.keyed(**{"changelog-producer": "input"})
    for number in range(2):
        table.write(rows(number))
    assert table.health(unknown=True).storage.lost_changelog_files == ()
    first, *_ = sorted(warehouse.root.rglob("changelog-*.parquet"))
    if damage == "gone":
        first.unlink()
    else:
        first.write_bytes(first.read_bytes()[:-9])
    report = table.health(unknown=True)
    assert (report.storage.lost_files, report.storage.lost_changelog_files) == (
        (),
        (f"file://{first}",),
    )
    [reason] = [each for each in report.reasons if each.is_severe]
    assert reason.finding.startswith("1 changelog file is missing or truncated: ")
    assert reason.advice.endswith("lake consumer set shop.orders NAME --next 3")
    assert table.health().storage.lost_changelog_files is None


def test_changelogs_of_several_buckets_in_one_file_are_found(tmp_path):
    """The table is one of Java, which packed them."""
    table = lake.open_table(unpack_foreign("precommit_changelog", tmp_path))
    assert table.health(unknown=True).storage.lost_changelog_files == ()
    [*packs] = tmp_path.rglob("bucket-*/compacted-changelog-*")
    for path in packs:
        path.unlink()
    lost = table.health(unknown=True).storage.lost_changelog_files
    assert [unquote(each) for each in lost] == [f"file://{path}" for path in packs]
    assert len(packs) == 1


def test_a_file_with_a_shorter_one_of_its_name_elsewhere_is_not_lost(warehouse):
    """And a cut one is, though a whole copy lies elsewhere."""
    table = warehouse.partitioned(**{"compaction.min.file-num": "9"})
    table.write(pa.concat_tables([rows(1), rows(2, dt="b")]))
    first, other = sorted(warehouse.root.rglob("dt=*/bucket-0/*"))
    for path, copy in ((first, other.parent / first.name), (other, first.parent / other.name)):
        copy.write_bytes(path.read_bytes()[:-9])
    assert table.health(unknown=True).storage.lost_files == ()
    (other.parent / first.name).write_bytes(first.read_bytes())
    first.write_bytes(first.read_bytes()[:-9])
    assert table.health(unknown=True).storage.lost_files == (f"file://{first}",)


def test_a_file_that_is_committed_after_the_listing_is_none_that_is_gone(warehouse, monkeypatch):
    table = warehouse.table()
    table.write(rows(1))
    listed = unknown.list_files

    def then_commit(handle: object) -> pa.Table:
        found = listed(handle)
        table.write(rows(2))
        return found

    monkeypatch.setattr(unknown, "list_files", then_commit)
    assert table.health(unknown=True).storage.lost_files == ()


def test_a_write_under_way_is_unknown_and_no_reason(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    with table.new_writer() as writer:
        writer.write(rows(2))
        messages = writer.prepare()
        unknown = table.health(unknown=True).storage.unknown
        assert (unknown.files, unknown.old_files) == (1, 0)
        table.commit(messages)
    assert table.health(unknown=True).storage.unknown.files == 0


def test_snapshots_have_an_age(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    warehouse.clock[0] += 60_000
    table.write(rows(2))
    warehouse.clock[0] += 5_000
    snapshots = table.health().snapshots
    assert (snapshots.count, snapshots.oldest, snapshots.newest) == (2, 1, 2)
    assert (snapshots.oldest_age_seconds, snapshots.newest_age_seconds) == (65, 5)


def test_what_costs_time_is_left_out_if_nobody_asks(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    storage = table.health(time_travel=False).storage
    assert storage.time_travel_bytes is storage.time_travel_files is storage.unknown is None


def test_a_bad_verdict_never_stands_beside_a_good_score(warehouse):
    """The parts weigh bytes; thirty runs of a few bytes each are read slowly all the same."""
    options = {"num-sorted-run.compaction-trigger": "2", "num-sorted-run.stop-trigger": "3"}
    table = warehouse.keyed(**options, **{"write-only": "true"})
    assert table.health().why_they_differ is None
    for _ in range(30):
        table.write(rows(1))

    report = table.health()

    assert (report.verdict, report.score, report.score_parts.total) == (Verdict.UNHEALTHY, 49, 100)
    assert report.why_they_differ == (
        "the verdict unhealthy limits the score to 49; the parts of the score add up to 100"
    )
    said = health_job.run({"warehouse": str(warehouse.root), "table": report.table})
    assert said["reason"].startswith(f"unhealthy, score {report.score} (the verdict unhealthy")
    assert said["report"]["why_they_differ"] == report.why_they_differ


def test_a_report_is_plain_values_for_programs(warehouse):
    table = warehouse.keyed()
    table.write(rows(1))
    report = table.health(unknown=True)
    plain = json.loads(json.dumps(report.to_dict()))
    assert (plain["verdict"], plain["score"]) == ("healthy", 100)
    assert plain["worst_buckets"][0]["sorted_runs"] == 1
    assert "level 0" in plain["score_notes"][0]


def test_a_system_table_has_no_health_of_its_own(warehouse):
    table = warehouse.table()
    with pytest.raises(lake.UnsupportedError, match="system table"):
        table.system_table("files").health()


def test_what_expires_during_the_look_is_no_damage(warehouse):
    """The oldest snapshot and its manifest go while they are looked for."""
    table = warehouse.table()
    for number in range(3):
        table.write(rows(number), overwrite={})
    storage = _ExpiringStorage(table._handle.storage, table._handle.layout)
    report = lake.Table(replace(table._handle, storage=storage)).health()
    assert storage.is_done
    assert report.storage.time_travel_files == 1


class _ExpiringStorage:
    """Takes snapshot 1 and the lists it names away once its snapshot file has been read."""

    def __init__(self, storage, layout) -> None:
        self._storage, self._layout = storage, layout
        self.is_done = False

    def __getattr__(self, name: str):
        return getattr(self._storage, name)

    def read(self, path: str, *limit: int) -> bytes:
        content = self._storage.read(path, *limit)
        if not self.is_done and path == self._layout.snapshot(1):
            self.is_done = True
            self._storage.delete(path)
            members = json.loads(content)
            for key in ("baseManifestList", "deltaManifestList"):
                self._storage.delete(self._layout.manifest(members[key]))
        return content


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_rows_the_changelog_does_not_tell_of_yet_are_counted(warehouse, producer):
    table = warehouse.keyed(**{"changelog-producer": producer})
    table.write(rows(1, 2))
    table.write(rows(2))
    found = table.health().files
    assert (found.untold_files, found.untold_rows) == (2, 3)
    table.compact()
    found = table.health().files
    assert (found.untold_files, found.untold_rows) == (0, 0)


def test_a_table_whose_compactions_make_no_changelog_has_nothing_untold(warehouse):
    table = warehouse.keyed(**{"changelog-producer": "input"})
    table.write(rows(1))
    assert table.health().files.untold_files is None
