"""A removal of orphans keeps what any metadata file needs, and what may still be written."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import FixedPointer
from lakeformat.iceberg.metadata.snapshot import snapshot_from_json
from lakeformat.iceberg.metadata.statistics import StatisticsFile
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.table import IcebergTable
from lakeformat.iceberg.write.append import append
from lakeformat.storage import NO_ROOTS, ExternalRoots, MemoryStorage
from lakeformat.tables.parallel import in_parallel
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import NOW_MILLIS, simulated
from tests.sampling import sampled_faults
from tests.unit.iceberg.path_table import ROOT, handle_on
from tests.unit.iceberg.write.made_tables import ids_of, made_table, referenced_files, stored_files

DAY = 24 * 3600 * 1000
LATER = replace(simulated(first=900), now_millis=lambda: NOW_MILLIS + 30 * DAY)
LOST = f"{ROOT}/data/lost.parquet"


@pytest.fixture
def storage(clock) -> MemoryStorage:
    """A table of two appends, and one orphan of 4 bytes, all a month old."""
    storage = MemoryStorage("orphans", clock=clock)
    fill(storage)
    clock.millis += 30 * DAY
    return storage


def fill(storage) -> None:
    made_table(storage)
    for number in (1, 2):
        append_row(storage, number)
    storage.overwrite(LOST, b"lost")


def append_row(storage, number: int, environment: Environment | None = None) -> None:
    handle = handle_on(storage, environment or simulated(first=number))
    append(handle, pa.table({"id": pa.array([number], pa.int64())}))


def table(storage, environment: Environment = LATER) -> IcebergTable:
    return IcebergTable(handle_on(storage, environment))


def add_statistics(storage, address: str) -> None:
    """Commit metadata that names one more file."""

    def change(loaded):
        file = StatisticsFile(loaded.metadata.snapshots[0].snapshot_id, address, 4, 2)
        return replace(loaded.metadata, statistics=(file,))

    commit_metadata(handle_on(storage, LATER), change)


def paths(report: lake.OrphanReport) -> list[str]:
    return [each.path.partition(f"{ROOT}/")[2] for each in report.files]


def test_a_dry_run_names_each_orphan_with_its_kind_and_deletes_nothing(storage):
    storage.overwrite(f"{ROOT}/metadata/snap-9-1-dead.avro", b"123")
    storage.overwrite(f"{ROOT}/metadata/dead-m0.avro", b"123")
    storage.overwrite(f"{ROOT}/metadata/dead.stats", b"123")
    storage.overwrite(f"{ROOT}/metadata/00000-dead.metadata.json", b"123")
    storage.overwrite(f"{ROOT}/data/1-deletes.parquet", b"123")
    before = stored_files(storage)
    seen = []
    report = table(storage).remove_orphans("1 d", on_progress=seen.append)
    assert (report.orphan_files, report.young_files) == (1, 5)
    assert [each.uri for each in seen] == [report.files[0].path]
    assert report.files[0].reason.startswith(
        "not referenced by 3 metadata files, 2 snapshots and 2 manifests; last changed 2023-11-14"
    )
    late = replace(LATER, now_millis=lambda: NOW_MILLIS + 60 * DAY)
    assert {each.kind for each in table(storage, late).remove_orphans().files} == {
        *("data", "manifest list", "manifest", "statistics", "table metadata", "delete file")
    }
    assert stored_files(storage) == before


def test_a_removal_leaves_the_files_that_the_table_needs(storage):
    report = table(storage).remove_orphans(dry_run=False)
    assert (report.removed_files, report.removed_bytes) == (1, 4)
    assert report.reason == "removed 1 orphan of 11 files"
    assert stored_files(storage) == referenced_files(handle_on(storage))
    assert ids_of(handle_on(storage)) == [1, 2]


def test_files_of_three_days_are_kept_and_of_the_last_day_only_given_up_on_request(storage, clock):
    clock.millis -= 2 * DAY
    storage.overwrite(f"{ROOT}/data/young.parquet", b"young")
    assert paths(table(storage).remove_orphans()) == ["data/lost.parquet"]
    assert len(table(storage).remove_orphans("36 h").files) == 2
    with pytest.raises(InvalidRequestError, match="allow_younger=True"):
        table(storage).remove_orphans("1 h")
    assert table(storage).remove_orphans("1 h", allow_younger=True).override is not None
    began = NOW_MILLIS - DAY
    assert table(storage).remove_orphans(running_since=began).orphan_files == 0


def test_age_is_measured_by_the_clock_of_the_storage_if_that_is_behind(storage):
    # The metadata says that it was written 29 days after the time that the storage gave its file.
    ahead = replace(simulated(), now_millis=lambda: NOW_MILLIS + 59 * DAY)
    commit_metadata(handle_on(storage, ahead), lambda at: set_properties(at.metadata, {"a": "b"}))
    report = table(storage).remove_orphans()
    assert report.orphan_files == 0
    assert "the storage's clock is behind" in report.older_than_reason


def test_earlier_metadata_in_the_log_keeps_its_files(storage):
    current = table(storage).expire_snapshots(older_than="1 d", delete_files=False)
    assert len(current.snapshots) == 1
    assert paths(table(storage).remove_orphans()) == ["data/lost.parquet"]
    forget = {"write.metadata.previous-versions-max": "1"}
    for _ in range(2):
        commit_metadata(
            handle_on(storage, LATER), lambda loaded: set_properties(loaded.metadata, forget)
        )
        forget["more"] = "1"
    kinds = [each.kind for each in table(storage).remove_orphans().files]
    assert kinds.count("table metadata") == 3
    assert kinds.count("manifest list") == 1


def test_an_expired_snapshot_whose_files_are_gone_is_no_obstacle(storage):
    table(storage).expire_snapshots(older_than="1 d")
    assert paths(table(storage).remove_orphans()) == ["data/lost.parquet"]


def test_a_snapshot_that_cannot_be_read_stops_the_removal(storage):
    lists = [name for name in stored_files(storage) if "/snap-" in name]
    storage.delete(lists[0])
    with pytest.raises(CorruptTableError, match="does not exist"):
        table(storage).remove_orphans(dry_run=False)
    assert storage.exists(LOST)


def test_a_metadata_file_that_a_catalog_may_choose_next_is_kept_with_its_files(storage):
    newest = json.loads(storage.read(f"{ROOT}/metadata/v3.metadata.json"))
    newest["statistics"] = [
        {
            "snapshot-id": newest["current-snapshot-id"],
            "statistics-path": f"{newest['location']}/data/lost.parquet",
            "file-size-in-bytes": 4,
            "file-footer-size-in-bytes": 2,
            "blob-metadata": [],
        }
    ]
    name = f"{ROOT}/metadata/00004-next.metadata.json"
    storage.overwrite(name, json.dumps(newest).encode())
    storage.overwrite(f"{ROOT}/metadata/00009-torn.metadata.json", b"{")
    late = replace(LATER, now_millis=lambda: NOW_MILLIS + 60 * DAY)
    assert table(storage, late).remove_orphans().orphan_files == 0


@pytest.mark.parametrize("moment", ["list data", "read -m0.avro"])
def test_a_commit_between_the_listing_and_the_deletion_keeps_its_files(storage, moment):
    operation, end = moment.split()

    class Racing(MemoryStorage):
        racing = True

        def _commit(self, now: str, path: str) -> None:
            if self.racing and now == operation and path.endswith(end):
                self.racing = False
                add_statistics(storage, storage.uri(LOST))

        def list(self, path):
            found = super().list(path)
            self._commit("list", path)
            return found

        def read(self, path, *limit):
            found = super().read(path, *limit)
            self._commit("read", path)
            return found

    raced = Racing("orphans", clock=storage._clock)
    raced._files = storage._files
    assert table(raced).remove_orphans(dry_run=False).removed_files == 0
    assert not raced.racing
    assert storage.exists(LOST)


def test_another_table_below_is_left_alone(storage):
    for other in (
        *("inner/metadata/v1.metadata.json", "p/schema/schema-0"),
        *("delta/_delta_log/0.json", "hudi/.hoodie/hoodie.properties"),
    ):
        storage.overwrite(f"{ROOT}/data/{other}", b"{}")
    for file in ("inner/data", "p/bucket-0", "delta", "hudi"):
        storage.overwrite(f"{ROOT}/data/{file}/f.parquet", b"1")
    late = replace(LATER, now_millis=lambda: NOW_MILLIS + 60 * DAY)
    report = table(storage, late).remove_orphans(dry_run=False)
    assert paths(report) == ["data/lost.parquet"]
    assert report.reason.endswith("skipped 4 directories of other tables")
    assert storage.exists(f"{ROOT}/data/hudi/f.parquet")


def test_a_paimon_table_in_the_same_directory_is_left_alone(storage):
    storage.overwrite(f"{ROOT}/schema/schema-0", b"{}")
    before = stored_files(storage)
    for dry_run in (True, False):
        with pytest.raises(InvalidRequestError, match=r"a Paimon table \(schema/schema-0\), .* no"):
            table(storage).remove_orphans(dry_run=dry_run, max_share=1)
    assert stored_files(storage) == before


def test_metadata_that_names_the_file_of_a_neighbour_deletes_nothing_there(storage):
    neighbour = "shop/other/data/f.parquet"
    storage.overwrite(neighbour, b"1")
    add_statistics(storage, f"memory://orphans/{neighbour}")
    assert paths(table(storage).remove_orphans(dry_run=False)) == ["data/lost.parquet"]
    assert storage.exists(neighbour)


@pytest.mark.parametrize(
    "address", ["s3a://bucket/shop/orders/data/lost.parquet", "memory://x/y/data/lost.parquet"]
)
def test_a_file_that_metadata_names_at_another_place_is_an_error(storage, address):
    add_statistics(storage, address)
    with pytest.raises(InvalidRequestError, match="may be the same file, so it was not deleted"):
        table(storage).remove_orphans(dry_run=False)
    assert storage.exists(LOST)


@pytest.mark.parametrize(("max_share", "refused"), [(0.5, True), (1, False)])
def test_a_removal_of_most_files_is_refused(storage, clock, max_share, refused):
    clock.millis -= 20 * DAY
    for number in range(100):
        storage.overwrite(f"{ROOT}/data/{number}.parquet", b"1")
    assert (table(storage).remove_orphans(max_share=max_share).objection is not None) == refused
    if refused:
        with pytest.raises(InvalidRequestError, match=r"101 of 111 files .* max_share=50%"):
            table(storage).remove_orphans(dry_run=False)
    assert storage.exists(LOST)


NEWEST = f"{ROOT}/metadata/v3.metadata.json"
HINT_FILE = f"{ROOT}/metadata/version-hint.text"


def test_nothing_is_removed_while_the_newest_metadata_file_may_be_lost(storage):
    content = storage.read(NEWEST)
    storage.delete(NEWEST)
    files = stored_files(storage)
    planned = table(storage).remove_orphans(max_share=1)
    assert "version-hint.text has 3, but the newest metadata file is v2.meta" in planned.objection
    with pytest.raises(
        InvalidRequestError, match=r"The files of lost changes look like orphans.* write 2 into"
    ):
        table(storage).remove_orphans(max_share=1, dry_run=False)
    assert stored_files(storage) == files
    storage.overwrite(NEWEST, content)
    assert paths(table(storage).remove_orphans(dry_run=False)) == ["data/lost.parquet"]
    assert sorted(ids_of(handle_on(storage))) == [1, 2]


@pytest.mark.parametrize("way_out", ["hint", "commit"])
def test_a_wrong_hint_is_corrected_by_hand_or_by_a_commit(storage, way_out):
    storage.overwrite(HINT_FILE, b"9")
    assert table(storage).remove_orphans().objection is not None
    if way_out == "hint":
        storage.overwrite(HINT_FILE, b"3")
    else:
        append_row(storage, 3)
    assert paths(table(storage).remove_orphans(dry_run=False)) == ["data/lost.parquet"]


def test_a_hint_beyond_the_newest_file_is_no_objection_if_there_are_no_orphans(storage):
    storage.delete(LOST)
    storage.overwrite(HINT_FILE, b"9")
    assert table(storage).remove_orphans(dry_run=False).objection is None


def test_a_hint_above_an_older_file_by_which_a_table_is_opened_is_no_objection(storage):
    older = f"{ROOT}/metadata/v2.metadata.json"
    opened = IcebergTable(TableHandle(FixedPointer(storage, ROOT, NO_ROOTS, older), LATER))
    assert opened.remove_orphans().objection is None


def test_a_table_that_shares_its_files_is_refused(storage):
    shares = {"gc.enabled": "false"}
    commit_metadata(handle_on(storage), lambda loaded: set_properties(loaded.metadata, shares))
    with pytest.raises(UnsupportedError, match=r"'gc.enabled' of .* is false"):
        table(storage).remove_orphans()


def test_a_directory_outside_is_named_and_not_searched(storage):
    away = {"write.data.path": "memory://orphans/away"}
    commit_metadata(handle_on(storage), lambda loaded: set_properties(loaded.metadata, away))
    storage.overwrite("away/f.parquet", b"1")
    pointer = DirectoryPointer(storage, ROOT, ExternalRoots.of(["memory://orphans/away"]), LATER)
    report = IcebergTable(TableHandle(pointer, "main", LATER)).remove_orphans(dry_run=False)
    assert report.external_paths_left_out == ("memory://orphans/away",)
    assert storage.exists("away/f.parquet")
    with pytest.raises(UnsupportedError, match="does not take external_paths: leave it out"):
        table(storage).remove_orphans(external_paths=True)


def test_a_fault_at_any_storage_call_leaves_every_file_that_the_table_needs():
    start = CrashableStorage(clock=lambda: NOW_MILLIS)
    fill(start)
    needed = referenced_files(handle_on(start))

    def remove(storage, acknowledged):
        acknowledged.append(table(storage).remove_orphans(dry_run=False).removed_files)

    for trial in sampled_faults(remove, start=start):
        left = trial.run().reopened()
        assert needed <= stored_files(left), trial
        table(left).remove_orphans(dry_run=False)
        assert stored_files(left) == needed
        assert ids_of(handle_on(left)) == [1, 2]


def test_the_history_is_read_outside_of_the_main_thread_in_small_windows(storage, monkeypatch):
    for number in range(3, 13):
        append_row(storage, number)
    whole = table(storage).remove_orphans()
    for module in ("earlier_metadata", "snapshot_files", "references"):
        monkeypatch.setattr(f"lakeformat.iceberg.orphans.{module}._AT_A_TIME", 4)
    history, at_once, readers = [], [], {}
    read = MemoryStorage.read

    def noted(storage, path, *limit):
        if path.endswith(("avro", "json")):
            history.append(path)
            readers.setdefault(threading.get_ident(), []).append(path)
        return read(storage, path, *limit)

    def counted(act, items, threads=None):
        at_once.append(len(items))
        return in_parallel(act, items, threads)

    monkeypatch.setattr(MemoryStorage, "read", noted)
    for module in ("earlier_metadata", "snapshot_files"):
        monkeypatch.setattr(f"lakeformat.iceberg.orphans.{module}.in_parallel", counted)
    assert table(storage).remove_orphans() == whole
    assert paths(whole) == ["data/lost.parquet"]
    assert readers[threading.get_ident()] == [f"{ROOT}/metadata/v13.metadata.json"]  # the current
    assert len(history) == len(set(history)) == 13 + 2 * 12
    assert max(at_once) <= 4 + 1


def test_equal_snapshots_of_earlier_metadata_are_parsed_once(storage, monkeypatch):
    forget = {"write.metadata.previous-versions-max": "4"}
    commit_metadata(handle_on(storage), lambda at: set_properties(at.metadata, forget))
    for number in range(3, 11):
        append_row(storage, number)
    parsed = []

    def noted(members):
        parsed.append(members["snapshot-id"])
        return snapshot_from_json(members)

    monkeypatch.setattr("lakeformat.iceberg.orphans.earlier_metadata.snapshot_from_json", noted)
    table(storage).remove_orphans()
    assert len(parsed) == 9 + 5  # those of the files in the log, and of the other files


def test_a_snapshot_that_differs_in_earlier_metadata_is_read_again(storage, clock):
    clock.millis -= 30 * DAY
    append_row(storage, 3)
    path = f"{ROOT}/metadata/v3.metadata.json"
    earlier = json.loads(storage.read(path))
    kept = f"{ROOT}/metadata/kept.avro"
    named = earlier["snapshots"][0]["manifest-list"].partition(f"{ROOT}/")[2]
    storage.overwrite(kept, storage.read(f"{ROOT}/{named}"))
    earlier["snapshots"][0]["manifest-list"] = storage.uri(kept)
    storage.overwrite(path, json.dumps(earlier).encode())
    assert paths(table(storage).remove_orphans(max_share=1)) == ["data/lost.parquet"]


def test_an_expired_snapshot_without_its_files_is_read_once(storage, monkeypatch):
    for number in range(3, 7):
        append_row(storage, number)
    assert len(table(storage).expire_snapshots(older_than="1 d").snapshots) == 5
    tried = []
    read = MemoryStorage.read

    def noted(storage, path, *limit):
        if not storage.exists(path):
            tried.append(path)
        return read(storage, path, *limit)

    monkeypatch.setattr(MemoryStorage, "read", noted)
    assert paths(table(storage).remove_orphans()) == ["data/lost.parquet"]
    assert len(tried) == len(set(tried)) == 5
