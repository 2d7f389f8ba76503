"""``remove(table, dry_run=True)``: exactly the old unreferenced files are deleted."""

from __future__ import annotations

import itertools
import json
import os
import uuid
from collections import Counter
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.catalog.options import CatalogOptions
from lakeformat.environment import SYSTEM, Environment
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import write_changelog
from lakeformat.paimon.metadata.manifest_list import manifests_of
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.metadata.tag import Tag, create_tag
from lakeformat.storage import MemoryStorage
from lakeformat.tables.orphan_report import OrphanReport
from lakeformat.testing import CrashableStorage
from tests.sampling import SEED

COLUMNS = [("id", "BIGINT"), ("dt", "STRING")]
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOON = 1_700_000_000_000
UNIQUE = "0a1b2c3d-0000-4000-8000-0123456789ab"
_numbers = itertools.count()


class Warehouse:
    """One database in memory; its files and everybody's clock agree on the time."""

    def __init__(self, options: CatalogOptions | None = None) -> None:
        self.now = NOON
        self.storage = MemoryStorage(f"orphans-{next(_numbers)}", clock=lambda: self.now)
        random = Random(SEED)
        environment = Environment(
            now_millis=lambda: self.now,
            new_id=lambda: str(uuid.UUID(int=random.getrandbits(128), version=4)),
            sleep_seconds=lambda seconds: None,
        )
        self.catalog = FileSystemCatalog(self.storage, "wh", environment, options)
        self.catalog.create_database("shop")

    def table(self, name: str = "orders", **how) -> lake.Table:
        return self.catalog.create_table(f"shop.{name}", COLUMNS, **how)

    def put(self, path: str, name: str = "orders") -> str:
        """An unknown file."""
        place = f"wh/shop.db/{name}/{path}"
        self.storage.overwrite(place, b"orphan")
        return place

    def files(self) -> set[str]:
        return set(self.storage.files())


@pytest.fixture
def warehouse() -> Warehouse:
    return Warehouse()


def rows(*ids: int, dt: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "dt": [dt] * len(ids)})


def prepared(table: lake.Table, *ids: int) -> list[lake.CommitMessage]:
    """Rows in files that no commit knows."""
    with table.new_writer() as writer:
        writer.write(rows(*ids))
        return writer.prepare()


def removed(table: lake.Table, **how) -> int:
    return remove(table, **how).removed_files


def remove(table: lake.Table, **how) -> OrphanReport:
    """Remove what is a day old, also where no commit came after it."""
    age = {} if "running_since" in how else {"older_than": "1 d"}
    return table.remove_orphans(**{"dry_run": False, **age, **how})


# ---------------------------------------------------------------- what goes, and what stays


def test_a_file_that_was_never_committed_goes_after_a_day(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    before = warehouse.files()
    prepared(table, 2)
    warehouse.now += DAY
    assert removed(table) == 0
    warehouse.now += 1
    assert removed(table) == 1
    assert warehouse.files() == before
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_asking_first_changes_nothing_and_says_what_would_go_and_why(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    warehouse.now += HOUR
    prepared(table, 2)
    warehouse.now += 2 * DAY
    before = warehouse.files()
    report = remove(table, dry_run=True)
    assert warehouse.files() == before
    assert (report.dry_run, report.orphan_files, report.removed_files) == (True, 1, 0)
    [file] = report.files
    assert (file.kind, file.newest_snapshot, file.modified_millis) == ("data", 1, NOON + HOUR)
    assert file.size == report.orphan_bytes
    assert file.reason.startswith("no reference in 1 snapshot, 0 tags, 0 changelogs of 1")
    assert file.reason.endswith("when snapshot 1 was the newest")
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["files"][0]["modified"].startswith("2023-11-14")


def test_what_any_snapshot_tag_branch_or_changelog_leads_to_stays(warehouse):
    """Snapshot 1 has a tag, 2 a branch, 3 a changelog; all three have expired."""
    table = warehouse.table()
    handle = table._handle
    storage, layout = handle.storage, handle.layout
    for number in range(5):
        table.write(rows(number), overwrite={})
    create_tag(storage, layout, Tag("kept", read_snapshot(storage, layout, 1)))
    for kind, name in (("schema", "schema-0"), ("snapshot", "snapshot-2")):
        content = storage.read(f"{layout.root}/{kind}/{name}")
        storage.overwrite(f"{layout.root}/branch/branch-dev/{kind}/{name}", content)
    write_changelog(storage, layout, read_snapshot(storage, layout, 3))
    for number in (1, 2, 3):
        storage.delete(layout.snapshot(number))
    before = warehouse.files()
    warehouse.now += 2 * DAY
    report = remove(table)
    assert "2 snapshots, 1 tag" not in report.looked_through  # the branch has one more
    assert report.looked_through == "3 snapshots, 1 tag, 1 changelog of 2 branches"
    assert report.removed_files == 0
    assert warehouse.files() == before


def test_once_nothing_leads_to_it_what_an_expiry_left_goes(warehouse):
    """Manifests still name the files of snapshot 1, which were added and deleted."""
    table = warehouse.table()
    for number in range(3):
        table.write(rows(number), overwrite={})
    handle = table._handle
    for number in (1, 2):
        handle.storage.delete(handle.layout.snapshot(number))
    warehouse.now += 2 * DAY
    report = remove(table)
    kinds = Counter(file.kind for file in report.files)
    assert kinds == {"data": 2, "manifest list": 4}
    assert table.scan().to_arrow()["id"].to_pylist() == [2]
    assert remove(table).removed_files == 0


def test_a_snapshot_lost_between_others_costs_no_file_of_those(warehouse):
    table = warehouse.table()
    for number in range(4):
        table.write(rows(number))
    table._handle.storage.delete(table._handle.layout.snapshot(2))
    warehouse.now += 2 * DAY
    remove(table)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert sorted(table.scan(snapshot=3).to_arrow()["id"].to_pylist()) == [0, 1, 2]


def test_changelog_and_index_files_of_a_snapshot_stay(warehouse):
    table = warehouse.table(
        primary_key=["id"],
        options={
            "bucket": "1",
            "changelog-producer": "lookup",
            "deletion-vectors.enabled": "true",
        },
    )
    table.write(rows(*range(20_000)))
    table.compact(executor="serial")
    for number in range(2):
        table.write(rows(number))
        table.compact(strategy="minor", executor="serial")
    before = warehouse.files()
    kinds = {"/index/index-", "/bucket-0/changelog-"}
    assert {kind for kind in kinds if any(kind in path for path in before)} == kinds
    warehouse.now += 2 * DAY
    report = remove(table)
    assert report.removed_files == 0
    assert warehouse.files() == before


def test_of_a_changelog_that_tells_nothing_no_file_is_needed(warehouse):
    """The compaction writes the changelog; the write before it has none."""
    table = warehouse.table(
        primary_key=["id"], options={"bucket": "1", "changelog-producer": "full-compaction"}
    )
    handle = table._handle
    storage, layout = handle.storage, handle.layout
    for number in range(2):
        table.write(rows(number))
        table.compact(executor="serial")
    told = [read_snapshot(storage, layout, number) for number in (1, 2)]
    assert [each.changelog_manifest_list is None for each in told] == [True, False]
    for snapshot in told:
        write_changelog(storage, layout, snapshot)
        storage.delete(layout.snapshot(snapshot.id))
    for name in (told[0].base_manifest_list, told[0].delta_manifest_list):
        storage.delete(layout.manifest(name))
    warehouse.now += 2 * DAY
    remove(table)
    assert table.changes(after=1, upto=2, mode="changelog").to_arrow().num_rows == 1
    assert remove(table, dry_run=True).orphan_files == 0


def test_every_directory_of_the_format_is_looked_at(warehouse):
    table = warehouse.table(partition_by=["dt"])
    table.write(rows(1))
    orphans = {
        warehouse.put(path)
        for path in (
            f"dt=a/bucket-0/data-{UNIQUE}-0.parquet",
            f"dt=a/bucket-0/changelog-{UNIQUE}-1.parquet",
            f"dt=b/bucket-postpone/data-{UNIQUE}-2.parquet",
            f"index/index-{UNIQUE}-0",
            f"manifest/manifest-{UNIQUE}-0",
            f"manifest/manifest-list-{UNIQUE}-0",
            f"manifest/index-manifest-{UNIQUE}-0",
            f"statistics/stat-{UNIQUE}-0",
            f"snapshot/.snapshot-2.{UNIQUE}.tmp",
            f"snapshot/snapshot-2{UNIQUE}.tmp",
            f"branch/branch-dev/changelog/.changelog-2.{UNIQUE}.tmp",
        )
    }
    warehouse.now += 2 * DAY
    before = warehouse.files()
    report = remove(table)
    assert before - warehouse.files() == orphans
    assert Counter(file.kind for file in report.files) == {
        "data": 2,
        "changelog": 1,
        "index": 1,
        "manifest": 1,
        "manifest list": 1,
        "index manifest": 1,
        "statistics": 1,
        "other": 3,
    }


def test_names_that_no_writer_gives_and_places_that_are_no_tables_stay(warehouse):
    table = warehouse.table(partition_by=["dt"])
    table.write(rows(1))
    manifest = needed_manifest(table)
    for path in (
        "dt=a/bucket-0/README",
        f"dt=a/bucket-0/data-{UNIQUE}-0.blob",
        f"manifest/{manifest}.newer",
        "dt=a/_SUCCESS",
        f"dt=a/data-{UNIQUE}-0.parquet",
        f"other/bucket-0/data-{UNIQUE}-0.parquet",
        f"bucket-0/data-{UNIQUE}-0.parquet",
        "snapshot/.expire-3-x",
        "snapshot/notes.txt",
        f"schema/schema-7-{UNIQUE}",
        "tag/tag-success-file/x_SUCCESS",
    ):
        warehouse.put(path)
    before = warehouse.files()
    warehouse.now += 2 * DAY
    report = remove(table)
    assert warehouse.files() == before
    assert report.unknown_files == 2


def needed_manifest(table: lake.Table) -> str:
    """The name of a manifest the newest snapshot needs."""
    handle, snapshot = table._handle, table.latest_snapshot()
    [manifest] = manifests_of(handle.storage, handle.layout, snapshot)
    return manifest.file_name


def test_where_the_storage_says_no_age_a_file_stays(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    warehouse.now, then = 0, warehouse.now
    warehouse.put(f"bucket-0/data-{UNIQUE}-0.parquet")
    warehouse.now = then + 2 * DAY
    report = remove(table)
    assert report.unknown_files == 1
    assert report.reason.endswith("of an active or unknown writer")


def test_a_writer_that_is_still_at_work_keeps_all_its_files(warehouse):
    """The first file is three days old, the last of minutes ago."""
    table = warehouse.table()
    table.write(rows(1))
    first = warehouse.put(f"bucket-0/data-{UNIQUE}-0.parquet")
    warehouse.now += 3 * DAY
    warehouse.put(f"bucket-0/data-{UNIQUE}-1.parquet")
    warehouse.now += MINUTE
    report = remove(table)
    assert (report.removed_files, report.writing_files, report.young_files) == (0, 1, 1)
    warehouse.now += 2 * DAY
    assert removed(table) == 2
    assert first not in warehouse.files()


def test_the_files_of_messages_that_somebody_kept_stay(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    messages = prepared(table, 2)
    prepared(table, 3)
    warehouse.now += 9 * DAY
    assert removed(table, in_use=messages) == 1
    table.commit(messages)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_the_oldest_write_under_way_moves_the_floor(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    began = warehouse.now
    prepared(table, 2)
    warehouse.now += 9 * DAY
    report = remove(table, running_since=began)
    assert report.removed_files == 0
    assert "a write has been in progress since" in report.older_than_reason
    assert removed(table, running_since=began + 5 * MINUTE) == 0
    assert removed(table, running_since=began + 5 * MINUTE + 1) == 1


def test_younger_files_go_only_if_somebody_insists(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    prepared(table, 2)
    warehouse.now += MINUTE
    with pytest.raises(lake.InvalidRequestError, match="allow_younger"):
        table.remove_orphans(older_than=warehouse.now, dry_run=False)
    report = table.remove_orphans(older_than=warehouse.now, dry_run=False, allow_younger=True)
    assert (report.removed_files, report.override is None) == (1, False)


def test_a_storage_whose_clock_is_late_gets_as_much_more_time(warehouse):
    """A file that looks two days old is one day old."""
    table = warehouse.table()
    table.write(rows(1))
    handle = replace(
        table._handle,
        environment=replace(SYSTEM, now_millis=lambda: warehouse.now + DAY),
    )
    late = lake.Table(handle)
    late.write(rows(2))
    prepared(late, 3)
    warehouse.now += DAY // 2
    report = remove(late)
    assert report.removed_files == 0
    assert "1 d earlier, because the storage's clock is behind" in report.older_than_reason
    warehouse.now += DAY // 2 + 1
    assert removed(late) == 1


def on_a_clock_ahead(table: lake.Table, millis: int) -> lake.Table:
    """The table on a machine whose clock runs ahead of the storage's."""
    now = table._handle.environment.now_millis
    ahead = replace(table._handle.environment, now_millis=lambda: now() + millis)
    return lake.Table(replace(table._handle, environment=ahead))


@pytest.mark.parametrize("how", [{}, {"older_than": "1 d"}, {"running_since": NOON}])
def test_a_clock_that_runs_ahead_removes_no_file_of_a_write_under_way(warehouse, how):
    table = warehouse.table()
    table.write(rows(1))
    messages = prepared(table, 2)
    warehouse.now += MINUTE
    report = on_a_clock_ahead(table, 2 * DAY).remove_orphans(dry_run=False, **how)
    assert (report.removed_files, report.young_files) == (0, 1)
    table.commit(messages)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_commit_dated_by_a_clock_ahead_makes_no_file_older(warehouse):
    table = warehouse.table()
    ahead = on_a_clock_ahead(table, 3 * DAY)
    messages = prepared(table, 2)
    ahead.write(rows(1))
    assert removed(ahead) == 0
    assert ahead.remove_orphans().orphan_files == 0
    table.commit(messages)


def test_a_write_under_way_for_two_days_keeps_its_files(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    messages = prepared(table, 2)
    warehouse.now += 2 * DAY + HOUR
    report = table.remove_orphans(dry_run=False)
    assert report.removed_files == 0
    assert report.older_than_reason.startswith("snapshot 1 from 2023-11-14 22:13:20.000Z is the n")
    table.commit(messages)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_after_a_later_commit_the_files_of_a_dead_write_go_once_they_are_a_day_old(warehouse):
    table = warehouse.table()
    prepared(table, 2)
    warehouse.now += DAY + 1
    table.write(rows(1))
    assert table.remove_orphans(dry_run=False).removed_files == 1


def test_a_removal_leaves_no_file_of_its_own_and_a_dry_run_writes_none(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    storage = CrashableStorage(clock=lambda: warehouse.now)
    for path, content in warehouse.storage.files().items():
        storage.overwrite(path, content)
    seen = lake.Table(replace(table._handle, storage=storage))
    before, calls = storage.files(), len(storage.log)
    seen.remove_orphans()
    assert not {call.operation for call in storage.log[calls:]} & {"overwrite", "create", "delete"}
    seen.remove_orphans(dry_run=False)
    assert storage.files() == before


# ---------------------------------------------------------------- what makes no sense is refused


def test_a_table_that_nobody_has_committed_to_has_only_orphans_and_needs_another_word(warehouse):
    table = warehouse.table()
    prepared(table, 1)
    warehouse.now += 2 * DAY
    assert "has no snapshot, tag or changelog" in remove(table, dry_run=True).objection
    with pytest.raises(lake.InvalidRequestError, match="has no snapshot, tag or changelog"):
        remove(table)
    assert removed(table, max_share=1) == 1


def test_more_than_half_of_a_table_needs_another_word(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    for number in range(101):
        warehouse.put(f"bucket-0/data-{UNIQUE}-{number}.parquet")
    warehouse.now += 2 * DAY
    before = warehouse.files()
    with pytest.raises(lake.InvalidRequestError, match=r"101 of 105 files .* 96% of its files or"):
        remove(table)
    assert warehouse.files() == before
    assert remove(table, dry_run=True).objection is not None
    assert removed(table, max_share=0.97) == 101


@pytest.mark.parametrize("branch", ["main", "b"])
def test_nothing_is_removed_while_the_newest_snapshot_of_a_branch_may_be_lost(warehouse, branch):
    table = warehouse.table()
    table.write(rows(1))
    table.tags.create("v1")
    table.branches.create("b", tag="v1")
    for name in ("orders", "orders$branch_b"):
        warehouse.catalog.table(f"shop.{name}").write(rows(2))
    before = warehouse.files()
    lost = table._handle.layout.on_branch(branch).snapshot(2)
    content = warehouse.storage.read(lost)
    warehouse.storage.delete(lost)
    warehouse.now += 10 * DAY
    how = {"older_than": "3 d", "max_share": 1}
    assert "LATEST has 2, but the newest file is snapshot-1" in (
        table.remove_orphans(**how).objection
    )
    with pytest.raises(lake.InvalidRequestError, match=r"run `lake repair-hints shop\.orders`"):
        table.remove_orphans(dry_run=False, **how)
    assert warehouse.files() == before - {lost}
    warehouse.storage.overwrite(lost, content)
    assert table.remove_orphans(dry_run=False, **how).orphan_files == 0
    warehouse.storage.delete(lost)
    table.repair()
    assert table.remove_orphans(dry_run=False, **how).removed_files > 0


def test_a_hint_beyond_the_newest_snapshot_is_only_a_warning_without_orphans(warehouse, caplog):
    table = warehouse.table()
    table.write(rows(1))
    warehouse.storage.overwrite(table._handle.layout.latest_hint, b"9")
    assert table.remove_orphans(dry_run=False).objection is None
    assert "LATEST has 9, but the newest file is snapshot-1" in caplog.text


def test_a_removal_reads_the_hint_of_each_branch_once(warehouse):
    storage = CrashableStorage(clock=lambda: warehouse.now)
    catalog = FileSystemCatalog(storage, "wh", warehouse.catalog._environment)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    table.write(rows(1))
    calls = len(storage.log)
    table.remove_orphans()
    of_hint = [each for each in storage.log[calls:] if each.path.endswith("/LATEST")]
    assert [each.operation for each in of_hint] == ["read"]


@pytest.mark.parametrize("share", [0, -1, 1.5, True, "all"])
def test_a_share_that_is_none_is_refused(warehouse, share):
    with pytest.raises(lake.InvalidRequestError, match="max_share"):
        warehouse.table().remove_orphans(max_share=share)


def test_messages_that_are_none_are_refused(warehouse):
    with pytest.raises(lake.InvalidRequestError, match="in_use must contain CommitMessages"):
        warehouse.table().remove_orphans(in_use=[b"message"])


def test_a_system_table_has_no_files_of_its_own(warehouse):
    files = warehouse.table().system_table("files")
    for call in (files.remove_orphans, files.remove_missing_files, files.repair):
        with pytest.raises(lake.UnsupportedError, match="system table"):
            call()


def test_damage_ends_the_look_before_anything_goes(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    table.write(rows(2))
    prepared(table, 3)
    handle = table._handle
    handle.storage.delete(handle.layout.manifest(table.latest_snapshot().base_manifest_list))
    warehouse.now += 2 * DAY
    before = warehouse.files()
    with pytest.raises(lake.CorruptTableError, match="is missing although a snapshot"):
        remove(table)
    assert warehouse.files() == before


# ---------------------------------------------------------------- others are at work meanwhile


class Meanwhile:
    """A storage on which something happens right before the first listing of a directory."""

    def __init__(self, storage, directory: str, act) -> None:
        self._storage, self._directory, self._act = storage, directory, act
        self.is_done = False

    def __getattr__(self, name: str):
        return getattr(self._storage, name)

    def list(self, path: str):
        found = self._storage.list(path)
        if not self.is_done and path == self._directory:
            self.is_done = True
            self._act()
        return found


def disturbed(table: lake.Table, directory: str, act) -> tuple[lake.Table, Meanwhile]:
    handle: TableHandle = table._handle
    storage = Meanwhile(handle.storage, f"{handle.layout.root}/{directory}", act)
    return lake.Table(replace(handle, storage=storage)), storage


def test_files_that_are_committed_right_after_they_were_listed_stay(warehouse):
    """They are three days old, and their writer was slow to commit them."""
    table = warehouse.table()
    table.write(rows(1))
    messages = prepared(table, 2)
    prepared(table, 3)
    warehouse.now += 3 * DAY
    seen, storage = disturbed(table, "bucket-0", lambda: table.commit(messages))
    assert removed(seen) == 1
    assert storage.is_done
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_what_expires_while_it_is_read_is_no_damage(warehouse):
    table = warehouse.table()
    for number in range(3):
        table.write(rows(number), overwrite={})
    handle = table._handle
    first = read_snapshot(handle.storage, handle.layout, 1)

    def expire() -> None:
        handle.storage.delete(handle.layout.snapshot(1))
        for name in (first.base_manifest_list, first.delta_manifest_list):
            handle.storage.delete(handle.layout.manifest(name))

    seen, storage = disturbed(table, "changelog", expire)
    warehouse.now += 2 * DAY
    remove(seen)
    assert storage.is_done
    assert table.scan().to_arrow()["id"].to_pylist() == [2]
    assert table.scan(snapshot=2).to_arrow()["id"].to_pylist() == [1]


def test_a_file_that_would_not_go_is_named_and_left_to_the_next_run(warehouse):
    table = warehouse.table()
    table.write(rows(1))
    stubborn = warehouse.put(f"bucket-0/data-{UNIQUE}-0.parquet")
    warehouse.put(f"bucket-0/data-{UNIQUE}-1.parquet")
    warehouse.now += 2 * DAY

    class Stubborn(Meanwhile):
        def delete(self, path: str) -> None:
            if path == stubborn:
                raise lake.UnavailableError("not now")
            self._storage.delete(path)

    handle = table._handle
    seen = lake.Table(replace(handle, storage=Stubborn(handle.storage, "", None)))
    report = remove(seen)
    assert (report.removed_files, report.failures) == (1, 1)
    assert "not now" in report.failed[0]
    assert stubborn in report.failed[0]
    assert removed(table) == 1


# ---------------------------------------------------------------- outside of the table


def test_external_paths_are_looked_at_only_if_somebody_says_so(tmp_path):
    warehouse = Warehouse(CatalogOptions({"external-roots": str(tmp_path)}))
    outside = f"file://{tmp_path}/outside"
    table = warehouse.table(
        options={
            "data-file.external-paths": outside,
            "data-file.external-paths.strategy": "round-robin",
        }
    )
    table.write(rows(1))
    prepared(table, 2)
    [directory] = tmp_path.glob("outside/bucket-0")
    assert len(list(directory.iterdir())) == 2
    for path in directory.iterdir():
        os.utime(path, (NOON / 1000, NOON / 1000))
    warehouse.now += 2 * DAY
    report = remove(table)
    assert (report.removed_files, report.external_paths_left_out) == (0, (outside,))
    report = remove(table, external_paths=True)
    assert (report.removed_files, report.external_paths_left_out) == (1, ())
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_emptied_directories_go_where_the_table_wants_them_to(warehouse):
    options = {"snapshot.clean-empty-directories": "true"}
    table = warehouse.table(partition_by=["dt"], options=options)
    table.write(rows(1))
    warehouse.put(f"dt=b/bucket-0/data-{UNIQUE}-0.parquet")
    warehouse.storage.make_directory("wh/shop.db/orders/dt=b/bucket-0")
    warehouse.now += 2 * DAY
    report = remove(table)
    assert (report.removed_files, report.removed_directories) == (1, 2)
    assert not warehouse.storage.directory_exists("wh/shop.db/orders/dt=b")


# ---------------------------------------------------------------- names as numbers
