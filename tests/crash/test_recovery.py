"""Work that is taken up again by another process: it is done once, or refused with a reason."""

from __future__ import annotations

import errno
import itertools
import os
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import UnavailableError
from lakeformat.paimon.commit.written_files import written_paths
from lakeformat.paimon.compact.run import run_unit
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.storage import LocalStorage, MemoryStorage
from lakeformat.testing import CrashableStorage
from tests.crash.references import left_behind, referenced_files
from tests.paper import commit, file, live, message, paper_table
from tests.sampling import SEED, count, sampled_faults

LAYOUT = TableLayout("wh/shop.db/orders")
PREPARED = "driver/prepared"
IDENTITY = lake.CommitId("run", 0)
_names = itertools.count()


def world(first_name: int = 0) -> Environment:
    """A world in which every run makes the same calls, with names from a number on."""
    names = itertools.count(first_name)
    return Environment(
        now_millis=lambda: 1_700_000_000_000,
        new_id=lambda: f"{next(names):08d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )


def with_a_table(storage):
    FileSystemCatalog(storage, "wh", world()).create_database("shop")
    FileSystemCatalog(storage, "wh", world()).create_table("shop.orders", [("id", "BIGINT")])
    return storage


def table_in(storage) -> lake.Table:
    return load_table(storage, LAYOUT, world(len(storage.files()) * 1000))


def memory_table() -> lake.Table:
    return table_in(with_a_table(MemoryStorage(f"recovery-{next(_names)}")))


def prepared(table: lake.Table, *ids: int) -> list[lake.CommitMessage]:
    writer = table.new_writer()
    writer.write(pa.table({"id": list(ids)}))
    return writer.prepare()


def ids_in(table: lake.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def data_files(storage) -> set[str]:
    return {path for path in storage.files() if path.endswith(".parquet")}


def prepare_keep_and_commit(storage, acknowledged):
    """A driver: what its tasks wrote is kept durably, then it is committed."""
    table = table_in(storage)
    if not storage.exists(PREPARED):
        [message] = prepared(table, 1, 2, 3)
        storage.create(PREPARED, message.to_bytes())
    messages = [lake.CommitMessage.from_bytes(storage.read(PREPARED))]
    table.commit(messages, commit=IDENTITY)
    acknowledged.append("committed")


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=3)))
def test_a_driver_killed_at_any_call_finds_what_it_kept_and_commits_exactly_that(seed):
    start = with_a_table(CrashableStorage())
    for trial in sampled_faults(prepare_keep_and_commit, start=start, seed=seed):
        trial.run()
        recovered = trial.reopened()
        was_kept = recovered.files().get(PREPARED)
        written_before = data_files(recovered)
        prepare_keep_and_commit(recovered, [])
        table = table_in(recovered)
        assert ids_in(table) == [1, 2, 3], str(trial)
        assert [each.id for each in table.snapshots()] == [1], str(trial)
        used = data_files(recovered) & referenced_files(table, recovered, LAYOUT)
        assert (used <= written_before) == (was_kept is not None), str(trial)


def test_of_a_task_that_ran_twice_only_the_try_that_was_reported_is_in_the_table():
    table = memory_table()
    first_try, second_try = prepared(table, 1, 2), prepared(table, 1, 2)
    table.commit(second_try, commit=IDENTITY)
    assert ids_in(table) == [1, 2]
    storage = table._handle.storage
    unused = {LAYOUT.data_file(0, file.file_name) for file in first_try[0].new_files}
    assert left_behind(table, storage, LAYOUT) == unused


class FullDisk(MemoryStorage):
    """No manifest can be written while the disk is full."""

    is_full = False

    def open_output(self, path):
        if self.is_full and "/manifest/" in path:
            raise UnavailableError("the disk is full")
        return super().open_output(path)


def test_on_a_full_disk_the_prepared_files_stay_until_somebody_gives_them_up():
    storage = with_a_table(FullDisk(f"recovery-{next(_names)}"))
    table = table_in(storage)
    messages = prepared(table, 1)
    before = set(storage.files())
    storage.is_full = True
    with pytest.raises(lake.UnavailableError, match="full"):
        table.commit(messages, commit=IDENTITY)
    assert set(storage.files()) == before
    storage.is_full = False
    table.commit(messages, commit=IDENTITY)
    assert ids_in(table) == [1]


def test_a_snapshot_a_full_disk_has_no_room_for_is_certainly_not_published(tmp_path, monkeypatch):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    write_temporary = LocalStorage._write_temporary

    def full(storage, path, content):
        if "/snapshot/" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_temporary(storage, path, content)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "_write_temporary", full)
        with pytest.raises(lake.UnavailableError, match=r"snapshot-1: .* free some space"):
            table.write(pa.table({"id": [1]}))

    assert [path for path in tmp_path.rglob("*-*") if path.is_file()] == [
        tmp_path / "shop.db/orders/schema/schema-0"
    ]
    table.write(pa.table({"id": [1]}))
    assert ids_in(table) == [1]


class DiesAtSnapshot(MemoryStorage):
    """The process ends before it publishes one chosen snapshot."""

    fatal = "never"

    def create(self, path, content):
        if path.endswith(self.fatal):
            raise KeyboardInterrupt
        return super().create(path, content)


def test_a_commit_that_died_before_its_compaction_is_whole_and_can_be_compacted_later():
    orders = paper_table(keyed=True, storage=DiesAtSnapshot(f"recovery-{next(_names)}"))
    old, new, merged = file("old"), file("new"), file("merged", level=5)
    commit(orders, message(orders, old))
    both = message(orders, new, compact_before=[old], compact_after=[merged])
    orders.storage.fatal = "snapshot-3"
    with pytest.raises(KeyboardInterrupt):
        commit(orders, both, user="run")
    orders.storage.fatal = "never"
    assert live(orders) == ["new", "old"]
    commit(orders, message(orders, compact_before=[old, new], compact_after=[file("all", level=5)]))
    assert live(orders) == ["all@5"]


def test_the_same_commit_repeated_after_it_died_half_way_is_finished():
    orders = paper_table(keyed=True, storage=DiesAtSnapshot(f"recovery-{next(_names)}"))
    old = file("old")
    commit(orders, message(orders, old))
    merged = file("merged", level=5)
    both = message(orders, file("new"), compact_before=[old], compact_after=[merged])
    orders.storage.fatal = "snapshot-3"
    with pytest.raises(KeyboardInterrupt):
        commit(orders, both, user="run")
    orders.storage.fatal = "never"
    report = commit(orders, both, user="run")
    assert (report.replayed, report.compact_snapshot_id) == (False, 3)
    assert live(orders) == ["merged@5", "new"]


def with_its_compaction() -> tuple[lake.Table, lake.CommitMessage]:
    """A table with rows in two files, and a message with a third one and what the two become."""
    storage = DiesAtSnapshot(f"recovery-{next(_names)}")
    catalog = FileSystemCatalog(storage, "wh")
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT")], primary_key=["id"], options={"bucket": "1"}
    )
    for _ in range(2):
        table.write(pa.table({"id": [1, 2]}))
    [unit] = table.plan_compaction().units
    compacted = run_unit(table._handle, unit)
    [message] = prepared(table, 3)
    halves = {name: getattr(compacted, name) for name in ("compact_before", "compact_after")}
    return table, replace(message, **halves)


def dies_between(table: lake.Table, both: lake.CommitMessage, identity: lake.CommitId) -> None:
    table._handle.storage.fatal = "snapshot-4"
    with pytest.raises(KeyboardInterrupt):
        table.commit([both], commit=identity)
    table._handle.storage.fatal = "never"


def test_prepared_files_committed_again_after_the_process_died_half_way_are_finished():
    table, both = with_its_compaction()
    dies_between(table, both, IDENTITY)
    report = table.commit([both], commit=IDENTITY)
    assert (report.replayed, report.snapshot_id, report.compact_snapshot_id) == (False, 3, 4)
    assert table.latest_snapshot().commit_kind == "COMPACT"
    assert ids_in(table) == [1, 2, 3]
    again = table.commit([both], commit=IDENTITY)
    assert (again.replayed, again.snapshot_id, again.compact_snapshot_id) == (True, 3, 4)
    assert table.latest_snapshot().id == 4


def test_a_commit_of_both_halves_is_found_although_its_files_are_compacted_away():
    table, both = with_its_compaction()
    table.commit([both], commit=IDENTITY)
    table.compact(executor="serial", strategy="full")
    table._handle.storage.delete(next(written_paths(table._handle, [both]))[1])
    again = table.commit([both], commit=IDENTITY)
    assert (again.replayed, again.snapshot_id, again.compact_snapshot_id) == (True, 3, 4)


def test_where_another_compaction_was_first_the_rows_are_found_as_often_as_it_is_repeated():
    """The second half is refused, and its files are removed; the third try does not miss them."""
    table, both = with_its_compaction()
    dies_between(table, both, IDENTITY)
    table.compact(executor="serial", strategy="full")
    first, second = (table.commit([both], commit=IDENTITY) for _ in range(2))
    assert (first.snapshot_id, first.compact_snapshot_id) == (3, None)
    assert "not in the table any more" in first.compact_refused
    assert (second.replayed, second.snapshot_id, second.compact_snapshot_id) == (True, 3, None)
    assert "do not exist any more" in second.compact_refused
    assert ids_in(table) == [1, 2, 3]


def compact_all(table: lake.Table, messages: list[lake.CommitMessage], *ids: int) -> None:
    """One file in place of those of the messages, as a compaction would leave it."""
    [merged] = prepared(table, *ids)
    before = tuple(meta for each in messages for meta in each.new_files)
    only_compacts = replace(
        merged, new_files=(), compact_before=before, compact_after=merged.new_files
    )
    table.commit([only_compacts])


@pytest.mark.parametrize("identified", [True, False])
def test_files_that_were_compacted_away_are_not_committed_again(identified):
    """Their own snapshots have expired, the files are still there for an older reader."""
    table = memory_table()
    messages = prepared(table, 1, 2)
    identity = IDENTITY if identified else None
    table.commit(messages, commit=identity)
    compact_all(table, messages, 1, 2)
    table.write(pa.table({"id": [3]}))
    table._handle.storage.delete(LAYOUT.snapshot(1))
    with pytest.raises(lake.InvalidRequestError, match=r"snapshot 2 \(COMPACT"):
        table.commit(messages, commit=identity)
    assert ids_in(table) == [1, 2, 3]


def test_files_that_are_gone_are_not_committed():
    table = memory_table()
    messages = prepared(table, 1)
    for path in data_files(table._handle.storage):
        table._handle.storage.delete(path)
    with pytest.raises(lake.InvalidRequestError, match="does not exist"):
        table.commit(messages, commit=IDENTITY)
    assert table.latest_snapshot() is None


def test_a_backfill_of_an_older_day_is_a_run_of_its_own_and_is_committed():
    table = memory_table()
    table.write(pa.table({"id": [1]}), commit=lake.CommitId("daily__2024-02-01", 0))
    report = table.write(pa.table({"id": [2]}), commit=lake.CommitId("backfill__2024-01-01", 0))
    assert (report.replayed, ids_in(table)) == (False, [1, 2])


def test_whoever_ran_out_of_attempts_publishes_once_when_it_is_run_again():
    storage = with_a_table(MemoryStorage(f"recovery-{next(_names)}"))
    table, rival = table_in(storage), load_table(storage, LAYOUT, world(10**6))
    publish, numbers = storage.create, itertools.count(100)

    def beaten(path, content):
        storage.create = publish
        rival.write(pa.table({"id": [next(numbers)]}))
        storage.create = beaten
        return publish(path, content)

    storage.create = beaten
    with pytest.raises(lake.CommitConflictError, match="or got no answer, in each of 11"):
        table.write(pa.table({"id": [1]}), commit=IDENTITY)
    storage.create = publish
    assert left_behind(table, storage, LAYOUT) == set()
    table.write(pa.table({"id": [1]}), commit=IDENTITY)
    assert table.write(pa.table({"id": [1]}), commit=IDENTITY).replayed
    assert ids_in(table) == [1, *range(100, 111)]
