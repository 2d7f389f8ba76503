"""Expiry of snapshots: deleted files, kept files, and their holders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CorruptTableError, UnavailableError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.deletion import announce, protection, read_intents
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.consumer import Consumer, write_consumer
from lakeformat.paimon.metadata.fence import write_fence
from lakeformat.paimon.metadata.manifest_list import ListKind, manifests_of
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot,
    snapshot_ids,
)
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.table import load_table
from lakeformat.storage import FileInfo, MemoryStorage
from tests.expired import files_of_tables, missing, unneeded
from tests.keyed_rows import KeyedRows

ALL = {"retain_max": 1, "retain_min": 1}
"""Everything but the newest snapshot."""


def handle_of(table: lake.Table) -> Any:
    return table._handle


def snapshot(table: lake.Table, number: int) -> Snapshot:
    return read_snapshot(handle_of(table).storage, handle_of(table).layout, number)


def data(table: lake.Table, number: int) -> set[str]:
    """The data files a snapshot consists of."""
    handle = handle_of(table)
    entries = plan_files(handle, snapshot(table, number))
    return {handle.layout.data_file(entry.bucket, entry.file.file_name) for entry in entries}


def lists(table: lake.Table, number: int) -> set[str]:
    """The base and the delta list of a snapshot."""
    found, layout = snapshot(table, number), handle_of(table).layout
    return {layout.manifest(found.base_manifest_list), layout.manifest(found.delta_manifest_list)}


def delta(table: lake.Table, number: int) -> set[str]:
    """The manifest of what a snapshot changed."""
    handle = handle_of(table)
    manifests = manifests_of(handle.storage, handle.layout, snapshot(table, number), ListKind.DELTA)
    return {handle.layout.manifest(each.file_name) for each in manifests}


def ids(table: lake.Table) -> list[int]:
    return snapshot_ids(handle_of(table).storage, handle_of(table).layout)


def example() -> tuple[KeyedRows, dict[str, str]]:
    """Five snapshots: a, b and c are added, compacted into d, and e is added."""
    rows, names = KeyedRows(), {}
    for name in "abc":
        before = data(rows.table, ids(rows.table)[-1]) if name != "a" else set()
        [names[name]] = data(rows.table, rows.commit(("+I", 1, name))) - before
    rows.table.compact(executor="serial")
    [names["d"]] = data(rows.table, 4)
    [names["e"]] = data(rows.table, rows.commit(("+I", 2, "e"))) - {names["d"]}
    return rows, names


def values(table: lake.Table, **when: Any) -> dict[int, str]:
    return {row["k"]: row["v"] for row in table.scan(**when).to_arrow().to_pylist()}


def test_with_snapshot_5_the_snapshots_1_to_4_expire_file_by_file():
    rows, names = example()
    table = rows.table
    gone = {names[name] for name in "abc"}.union(*(lists(table, n) for n in range(1, 5)))
    kept = {names["d"], names["e"], *lists(table, 5)}.union(*(delta(table, n) for n in range(1, 6)))
    assert files_of_tables(table) == gone | kept

    report = table.expire_snapshots(**ALL)

    assert files_of_tables(table) == kept  # the manifests of 1 to 4 too: snapshot 5 reads them
    assert ids(table) == [5]
    layout, storage = handle_of(table).layout, handle_of(table).storage
    assert storage.read(layout.earliest_hint) == b"5"
    assert report.snapshots == (1, 2, 3, 4)
    assert report.to_dict()["files"] == {"data": 3, "manifest list": 8, "snapshot": 4}
    assert values(table) == {1: "c", 2: "e"}


def test_a_tag_keeps_what_its_snapshot_consists_of():
    rows, names = example()
    table = rows.table
    rows.tag("two", 2)
    of_tag = {names["a"], names["b"], *lists(table, 2)}
    table.expire_snapshots(**ALL)
    assert of_tag <= files_of_tables(table)
    assert names["c"] not in files_of_tables(table)
    assert ids(table) == [5]
    assert values(table, tag="two") == {1: "b"}
    assert not unneeded(table)


def test_a_consumer_keeps_what_it_has_not_read():
    rows, names = example()
    table = rows.table
    table.consumers.set("job", next_snapshot=3)
    report = table.expire_snapshots(**ALL)
    assert ids(table) == [3, 4, 5]
    assert report.reason == "kept snapshots from 3 on for consumer 'job'"
    assert {names["a"], names["b"]} <= files_of_tables(table)
    assert not unneeded(table)


def test_a_consumer_that_fell_behind_is_told_of_and_keeps_nothing():
    rows, _ = example()
    handle = handle_of(rows.table)
    rows.table.expire_snapshots(retain_max=3, retain_min=1)
    write_consumer(handle.storage, handle.layout, Consumer("late", 1))
    report = rows.table.expire_snapshots(**ALL)
    assert report.stale_consumers == ("late",)
    assert ids(rows.table) == [5]


def test_a_dry_run_names_what_would_go_and_why_and_removes_nothing():
    rows, names = example()
    table = rows.table
    before = files_of_tables(table)
    planned = table.expire_snapshots(**ALL, dry_run=True)
    assert files_of_tables(table) == before
    assert ids(table) == [1, 2, 3, 4, 5]
    reasons = {removal.path: removal.reason for removal in planned.removals}
    assert reasons[names["a"]] == "deleted by snapshot 4, and no older snapshot is left"
    done = table.expire_snapshots(**ALL)
    assert done.to_dict() == {**planned.to_dict(), "dry_run": False}
    directory = f"{handle_of(table).layout.root}/"
    assert {path for path in reasons if "/snapshot-" not in path} == before - files_of_tables(table)
    assert all(path.startswith(directory) for path in reasons)


def test_what_is_removed_is_told_of_file_by_file():
    rows, _ = example()
    heard: list[Any] = []
    report = rows.table.expire_snapshots(**ALL, on_progress=heard.append)
    assert len(heard) == report.deleted.total == 15


def test_nothing_goes_from_a_table_nobody_has_written_to():
    report = KeyedRows().table.expire_snapshots(**ALL)
    assert (report.snapshots, report.reason) == ((), "the table has no snapshot yet")


def test_the_options_of_the_table_decide_where_the_call_says_nothing():
    rows = KeyedRows({"snapshot.num-retained.min": "2", "snapshot.time-retained": "3 min"})
    for number in range(6):  # one each minute
        rows.commit(("+I", number, "x"))
    report = rows.table.expire_snapshots()
    assert ids(rows.table) == [2, 3, 4, 5, 6]
    assert "snapshot 2 was the newest until 1970-01-01" in report.reason


def test_the_limit_is_how_many_go_at_most_and_the_report_says_that_there_are_more():
    rows, _ = example()
    first = rows.table.expire_snapshots(**ALL, limit=3)
    assert (first.snapshots, first.limited) == ((1, 2, 3), True)
    assert first.reason == "the limit is 3: run the expiry again, or raise limit (--limit)"
    last = rows.table.expire_snapshots(**ALL, limit=3)
    assert (last.snapshots, last.limited) == ((4,), False)
    assert not unneeded(rows.table)


def test_a_gap_in_the_numbers_is_passed_over():
    rows, _ = example()
    rows.expire(3)  # only its file, as somebody may do by hand
    assert rows.table.expire_snapshots(**ALL).snapshots == (1, 2, 4)
    assert values(rows.table) == {1: "c", 2: "e"}


def test_a_hint_that_hides_old_snapshots_keeps_none_of_them():
    rows, _ = example()
    handle = handle_of(rows.table)
    handle.storage.overwrite(handle.layout.earliest_hint, b"5")
    assert rows.table.expire_snapshots(**ALL).snapshots == (1, 2, 3, 4)
    assert not unneeded(rows.table)


def test_a_file_that_moves_up_a_level_inside_what_expires_stays():
    rows = KeyedRows()
    rows.commit(("+I", 1, "a"))
    rows.table.compact(executor="serial")  # nothing overlaps: the same file on another level
    rows.commit(("+I", 2, "b"))
    assert data(rows.table, 1) == data(rows.table, 2)
    rows.table.expire_snapshots(**ALL)
    assert values(rows.table) == {1: "a", 2: "b"}
    assert not missing(rows.table)


def test_a_file_that_was_added_again_after_its_deletion_stays_while_it_is_needed():
    rows = KeyedRows(keyed=False)
    table = rows.table
    rows.commit(("+I", 1, "a"))
    handle = handle_of(table)
    [entry] = plan_files(handle, snapshot(table, 1))
    table.truncate()
    add_again(table, entry)
    rows.commit(("+I", 2, "b"))
    table.expire_snapshots(retain_max=2, retain_min=1)  # 1 and 2 go, and with 2 what it deleted
    assert ids(table) == [3, 4]
    assert values(table) == {1: "a", 2: "b"}
    table.truncate()
    table.expire_snapshots(**ALL)
    assert not unneeded(table)


@pytest.mark.parametrize("looked_at", [100, 1], ids=["one by one", "by the newest"])
def test_a_file_that_is_added_again_behind_the_oldest_that_stays_is_found(
    looked_at: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(protection, "LATER_SNAPSHOTS", looked_at)
    rows = KeyedRows(keyed=False)
    table = rows.table
    rows.commit(("+I", 1, "a"))
    [entry] = plan_files(handle_of(table), snapshot(table, 1))
    table.truncate()
    for number in (2, 3, 4):
        rows.commit(("+I", number, "b"))
    add_again(table, entry)
    rows.commit(("+I", 5, "b"))
    report = table.expire_snapshots(retain_max=5, retain_min=1)
    assert (report.snapshots, report.spared) == ((1, 2), 1)
    assert values(table) == {1: "a", 2: "b", 3: "b", 4: "b", 5: "b"}


def test_a_tag_older_than_another_still_keeps_a_file_that_was_added_again():
    rows = KeyedRows(keyed=False)
    table = rows.table
    rows.commit(("+I", 1, "a"))
    [entry] = plan_files(handle_of(table), snapshot(table, 1))
    rows.tag("first", 1)
    table.truncate()
    rows.tag("empty", 2)
    add_again(table, entry)
    table.truncate()
    rows.commit(("+I", 2, "b"))
    table.expire_snapshots(**ALL)
    assert values(table, tag="first") == {1: "a"}
    assert values(table, tag="empty") == {}
    assert not unneeded(table)


def add_again(table: lake.Table, entry: Any) -> None:
    """As going back to an earlier snapshot does, without a tag that would protect it."""
    handle = handle_of(table)
    message = CommitMessage(
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        new_files=(entry.file,),
    )
    commit_messages(handle, [message], CommitOptions())


def test_a_branch_keeps_what_it_has_written_since_it_was_made_and_shares_by_now():
    """As after bringing main to where the branch is: both have its later snapshots."""
    rows = KeyedRows(keyed=False)
    table, handle = rows.table, handle_of(rows.table)
    rows.commit(("+I", 1, "a"))
    branch = handle.layout.on_branch("dev")
    handle.storage.overwrite(branch.schema(0), handle.storage.read(handle.layout.schema(0)))
    handle.storage.overwrite(branch.snapshot(1), handle.storage.read(handle.layout.snapshot(1)))
    on_branch = lake.open_table(table.location, branch="dev")
    on_branch.write(pa.table({"k": pa.array([2], pa.int32()), "v": ["b"]}))
    handle.storage.overwrite(handle.layout.snapshot(2), handle.storage.read(branch.snapshot(2)))
    handle.storage.overwrite(handle.layout.latest_hint, b"2")
    table.truncate()
    rows.commit(("+I", 3, "c"))
    report = table.expire_snapshots(**ALL)
    assert (report.snapshots, report.spared) == ((1, 2, 3), 2)
    assert values(on_branch) == {1: "a", 2: "b"}
    assert values(on_branch, snapshot=1) == {1: "a"}
    assert not unneeded(table)


def test_nothing_goes_while_a_rollback_takes_snapshots_away():
    """Its target may be among the oldest: counted from the removed head, it could expire."""
    rows, _ = example()
    handle = handle_of(rows.table)
    write_fence(handle.storage, handle.layout, "x", [snapshot(rows.table, n) for n in (4, 5)])
    report = rows.table.expire_snapshots(**ALL)
    assert (report.snapshots, ids(rows.table)) == ((), [1, 2, 3, 4, 5])
    assert report.reason.startswith("a rollback is running")


class TwoDaysAgo(MemoryStorage):
    """A storage whose fences are older than any rollback takes."""

    def __init__(self, inner: MemoryStorage, now: int) -> None:
        self.__dict__.update(inner.__dict__)
        self._then = now - 2 * 24 * 60 * 60 * 1000

    def list(self, path: str) -> list[FileInfo]:
        return [
            replace(info, modified_millis=self._then) if info.name.startswith(".fence") else info
            for info in super().list(path)
        ]


def test_a_rollback_that_died_does_not_hold_up_expiry_for_ever():
    rows, _ = example()
    handle = handle_of(rows.table)
    write_fence(handle.storage, handle.layout, "x", [snapshot(rows.table, n) for n in (4, 5)])
    storage = TwoDaysAgo(handle.storage, handle.environment.now_millis())
    table = load_table(storage, handle.layout, handle.environment)
    report = table.expire_snapshots(**ALL)
    assert report.snapshots == (1, 2, 3, 4)
    assert values(table) == {1: "c", 2: "e"}
    assert not missing(table)


def test_a_plan_that_gets_no_answer_takes_the_announcement_back():
    """Nothing is deleted by then: tags and branches of these snapshots must be allowed."""
    rows, _ = example()
    handle = handle_of(rows.table)

    class NoTags(MemoryStorage):
        def list(self, path: str) -> list[FileInfo]:
            if path.endswith("/tag"):
                raise UnavailableError(f"cannot list {path}")
            return super().list(path)

    storage = NoTags()
    storage.__dict__.update(handle.storage.__dict__)
    table = load_table(storage, handle.layout, handle.environment)
    with pytest.raises(UnavailableError):
        table.expire_snapshots(**ALL)
    assert not read_intents(handle)
    assert rows.table.tags.create("kept", snapshot=1).action == "created"


def test_a_dry_run_that_another_expiry_overtakes_says_so_and_is_no_damage():
    rows, _ = example()
    handle, met = handle_of(rows.table), []

    class Overtaken(MemoryStorage):
        def read(self, path: str, *limit: int) -> bytes:
            if "/manifest-list-" in path and not met:
                met.append(path)
                rows.table.expire_snapshots(**ALL)
            return super().read(path, *limit)

    storage = Overtaken()
    storage.__dict__.update(handle.storage.__dict__)
    table = load_table(storage, handle.layout, handle.environment)
    report = table.expire_snapshots(retain_max=3, retain_min=3, dry_run=True)
    assert met
    assert report.reason == "another expiry expired more snapshots meanwhile"


def test_a_snapshot_that_was_brought_back_keeps_its_files_from_an_interrupted_expiry():
    rows, names = example()
    table, handle = rows.table, handle_of(rows.table)
    going = [snapshot(table, number) for number in range(1, 5)]
    announce(handle, going, 5)
    for number in (1, 3, 4):  # all went, and then there was a rollback to 2
        rows.expire(number)
    report = table.expire_snapshots(retain_max=5, retain_min=5)
    assert report.snapshots == ()
    assert values(table, snapshot=2) == {1: "b"}
    assert names["c"] not in files_of_tables(table)


def test_a_reader_whose_snapshot_expires_is_told_to_scan_again_and_gets_no_wrong_rows():
    rows, _ = example()
    batches = rows.table.scan(snapshot=2).to_batches()
    rows.table.expire_snapshots(**ALL)
    with pytest.raises(lake.SnapshotExpiredError, match=r"snapshot 2 .* has expired while"):
        list(batches)


def test_directories_that_become_empty_go_if_the_table_says_so(tmp_path: Path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t",
        [("p", "STRING"), ("k", "INT")],
        partition_by=["p"],
        options={"snapshot.clean-empty-directories": "true"},
    )
    for partition in "xy":
        table.write(pa.table({"p": [partition], "k": pa.array([1], pa.int32())}))
    table.drop_partitions([{"p": "x"}])
    table.write(pa.table({"p": ["y"], "k": pa.array([2], pa.int32())}))
    assert table.expire_snapshots(**ALL).directories == 2  # the bucket, then its partition
    assert [path.name for path in (tmp_path / "shop.db/t").glob("p=*")] == ["p=y"]


def test_index_files_and_index_manifests_go_with_the_snapshots_that_had_them():
    rows = KeyedRows({"deletion-vectors.enabled": "true"})
    for number in range(3):
        rows.commit(*(("+I", key, f"{number}") for key in range(number, 4)))
        rows.table.compact(strategy="minor", executor="serial")
    handle = handle_of(rows.table)
    before = values(rows.table)
    report = rows.table.expire_snapshots(**ALL)
    assert report.snapshots
    assert values(rows.table) == before
    assert not unneeded(rows.table)
    assert not missing(rows.table)
    assert handle.storage.files(f"{handle.layout.root}/manifest")


def test_changelog_files_go_with_their_snapshots():
    rows = KeyedRows({"changelog-producer": "input"})
    for number in range(3):
        rows.commit(("+I", 1, f"{number}"))
    report = rows.table.expire_snapshots(**ALL)
    assert report.to_dict()["files"]["changelog"] == 2
    assert not unneeded(rows.table)
    assert not missing(rows.table)


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_health_knows_every_file_of_changelogs_that_outlive_their_snapshots(producer: str):
    options = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    longer = {"changelog.num-retained.min": "3", "changelog-producer": producer}
    rows = KeyedRows({**options, **longer})
    for number in range(4):
        rows.commit(("+I", 1, f"{number}"))
        rows.table.compact(strategy="minor", executor="serial")
    rows.tag("two", 2)
    assert rows.table.expire_snapshots().snapshots
    assert not missing(rows.table)
    unknown = rows.table.health(unknown=True).storage.unknown
    assert unknown is not None
    assert unknown.files == 0


def test_a_damaged_manifest_of_what_expires_is_told_of_and_holds_up_nothing():
    rows, names = example()
    table = rows.table
    handle = handle_of(table)
    [manifest] = delta(table, 4)
    handle.storage.overwrite(manifest, b"garbage")
    report = table.expire_snapshots(retain_max=2, retain_min=1)
    assert report.snapshots == (1, 2, 3)
    assert "the list of files that snapshot 4 deleted cannot be read" in report.notes[0]
    assert {names[name] for name in "abc"} <= files_of_tables(table)  # orphans now


def test_a_tag_that_cannot_be_read_stops_everything_before_anything_goes():
    rows, _ = example()
    table, handle = rows.table, handle_of(rows.table)
    rows.tag("two", 2)
    handle.storage.overwrite(handle.layout.manifest(snapshot(table, 2).base_manifest_list), b"x")
    before = files_of_tables(table)
    with pytest.raises(CorruptTableError, match="named by snapshot 2"):
        table.expire_snapshots(**ALL)
    assert files_of_tables(table) == before
    assert ids(table) == [1, 2, 3, 4, 5]
    names = [info.name for info in handle.storage.list(handle.layout.snapshot_directory)]
    assert not any(name.startswith(".expire") for name in names)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"older_than": 10**15}, "older_than is .* in the future"),
        ({"retain_min": 3, "retain_max": 2}, "retain_min is 3 and retain_max is 2"),
        ({"retain_max": 5}, "min is 10 and retain_max is 5, .*: also pass retain_min=5"),
        ({"retain_min": 0}, "retain_min is 0, but must be 1 or more"),
        ({"retain_max": "2"}, "retain_max is '2', but must be 1 or more"),
        ({"limit": 0}, "limit is 0, but must be 1 or more: leave it out"),
        ({"older_than": "yesterday"}, "yesterday"),
    ],
)
def test_what_contradicts_itself_is_refused_naming_the_rule(asked: Any, message: str):
    rows, _ = example()
    with pytest.raises(lake.InvalidRequestError, match=message):
        rows.table.expire_snapshots(**asked)
    assert ids(rows.table) == [1, 2, 3, 4, 5]


def test_a_system_table_expires_nothing():
    rows, _ = example()
    with pytest.raises(lake.UnsupportedError, match="system table"):
        rows.table.system_table("files").expire_snapshots()
    with pytest.raises(lake.UnsupportedError, match="system table"):
        rows.table.system_table("files").consumers.list()
