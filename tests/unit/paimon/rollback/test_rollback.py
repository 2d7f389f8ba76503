"""``table.rollback``: back to an earlier state, with or without the history since."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.deletion import announce
from lakeformat.paimon.metadata.consumer import Consumer, read_consumers, write_consumer
from lakeformat.paimon.metadata.hints import numbered_changelogs
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from lakeformat.paimon.metadata.tag import snapshot_content
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.rollback.as_latest import plan_return
from lakeformat.paimon.table import load_table
from lakeformat.storage.memory import MemoryStorage
from tests.expired import missing, unneeded
from tests.keyed_rows import KeyedRows

EXPIRE = {"retain_max": 1, "retain_min": 1}


def shop(commits: int = 4, **options: str) -> KeyedRows:
    rows = KeyedRows(options)
    for number in range(1, commits + 1):
        rows.commit(("+I", 1, f"v{number}"), watermark=number * 10)
    return rows


def value(table: lake.Table, **when) -> str:
    [row] = table.scan(**when).to_arrow().to_pylist()
    return row["v"]


def ids(table: lake.Table) -> list[int]:
    return snapshot_ids(table._handle.storage, table._handle.layout)


@pytest.mark.parametrize(
    "target", [{"snapshot": 2}, {"tag": "two"}, {"as_of": 179_999}, {"watermark": 29}]
)
def test_newer_snapshots_are_taken_out_of_history(target):
    table = shop().table
    table.tags.create("two", snapshot=2)
    planned = table.rollback(**target, dry_run=True, as_latest=False)
    assert (planned.removed_snapshots, ids(table)) == ((4, 3), [1, 2, 3, 4])
    report = table.rollback(**target, as_latest=False)
    assert (report.removed_snapshots, report.snapshot_id, ids(table)) == ((4, 3), 2, [1, 2])
    assert value(table) == "v2"
    assert table.rollback(**target, as_latest=False).reason.startswith(
        "snapshot 2 is the newest already"
    )


def test_what_comes_after_a_rollback_uses_the_numbers_again():
    rows = shop()
    old = rows.table.latest_snapshot()
    rows.table.rollback(snapshot=2, as_latest=False)
    rows.commit(("+I", 1, "new"))
    rows.commit(("+I", 1, "newer"))
    assert ids(rows.table) == [1, 2, 3, 4]
    assert rows.table.latest_snapshot().uuid != old.uuid
    assert value(rows.table) == "newer"


def published_as_iceberg(table: lake.Table) -> lake.Table:
    """The same table, which another engine publishes as Iceberg with every commit."""
    storage, path = table._handle.storage, table._handle.layout.schema(0)
    schema = json.loads(storage.read(path))
    schema["options"]["metadata.iceberg.storage"] = "glue-catalog"
    storage.overwrite(path, json.dumps(schema).encode())
    return load_table(storage, table._handle.layout, table._handle.environment)


@pytest.mark.parametrize("as_latest", [True, False])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_table_that_publishes_iceberg_metadata_is_left_alone(as_latest, dry_run):
    table = published_as_iceberg(shop().table)
    with pytest.raises(lake.UnsupportedError, match=r"'metadata\.iceberg\.storage'.*Nothing was"):
        table.rollback(snapshot=2, as_latest=as_latest, dry_run=dry_run)
    assert (ids(table), value(table), table.tags.list()) == ([1, 2, 3, 4], "v4", [])


@pytest.mark.parametrize(
    "target", [{}, {"snapshot": 1, "tag": "two"}, {"snapshot": 1, "watermark": 10}]
)
def test_exactly_one_target_is_said(target):
    with pytest.raises(lake.InvalidRequestError, match="a rollback needs exactly one of"):
        shop().table.rollback(**target)


def test_a_target_that_is_not_there_is_refused():
    table = shop().table
    for target in ({"snapshot": 9}, {"tag": "nix"}, {"as_of": 1}, {"watermark": 1}):
        with pytest.raises(lake.NotFoundError):
            table.rollback(**target, as_latest=False)
    with pytest.raises(lake.InvalidRequestError, match="force=True has an effect only"):
        table.rollback(snapshot=1, force=True)


def test_tags_and_branches_behind_the_target_are_not_lost_unless_somebody_insists():
    table = shop().table
    table.tags.create("three", snapshot=3)
    table.branches.create("dev", snapshot=4)
    with pytest.raises(
        lake.InvalidRequestError, match=r"tag 'three' and branch 'dev' of .* newer than 2"
    ) as refused:
        table.rollback(snapshot=2, as_latest=False)
    assert "could no longer be fast-forwarded" in str(refused.value)
    assert ids(table) == [1, 2, 3, 4]
    report = table.rollback(snapshot=2, force=True, as_latest=False)
    assert (report.removed_tags, table.tags.list()) == (("three",), [])
    assert "branch 'dev' has newer snapshots and is kept" in report.reason
    assert value(lake.open_table(table.location, branch="dev")) == "v4"


def test_a_dry_run_says_what_would_be_refused():
    table = shop().table
    table.tags.create("three", snapshot=3)
    report = table.rollback(snapshot=2, as_latest=False, dry_run=True)
    assert "Without force this is refused: tag 'three'" in report.reason
    assert report.objection is not None
    assert table.rollback(snapshot=2, as_latest=False, dry_run=True, force=True).objection is None
    assert table.rollback(snapshot=3, as_latest=False, dry_run=True).objection is None


def test_readers_that_were_ahead_go_on_behind_the_target():
    table = shop().table
    storage, layout = table._handle.storage, table._handle.layout
    for name, number in (("slow", 2), ("fast", 5)):
        write_consumer(storage, layout, Consumer(name, number))
    assert table.rollback(snapshot=2, as_latest=False).moved_consumers == ("fast",)
    found = read_consumers(storage, layout, table._handle.environment)
    assert {each.id: each.next_snapshot for each in found} == {"slow": 2, "fast": 3}


@pytest.mark.parametrize(("number", "moved"), [(3, ()), (4, ("reader",)), (5, ("reader",))])
def test_a_reader_moves_only_where_it_is_ahead_of_what_comes_after_the_target(number, moved):
    table = shop().table
    storage, layout = table._handle.storage, table._handle.layout
    write_consumer(storage, layout, Consumer("reader", number))
    for dry_run in (True, False):
        report = table.rollback(snapshot=2, as_latest=False, dry_run=dry_run)
        assert report.moved_consumers == moved
    [found] = read_consumers(storage, layout, table._handle.environment)
    assert found.next_snapshot == 3


def test_a_tag_whose_snapshot_has_expired_is_gone_back_to():
    table = shop().table
    table.tags.create("two", snapshot=2)
    table.expire_snapshots(**EXPIRE)
    report = table.rollback(tag="two", as_latest=False)
    assert (report.removed_snapshots, ids(table), value(table)) == ((4,), [2], "v2")
    storage, layout = table._handle.storage, table._handle.layout
    assert (storage.read(layout.earliest_hint), storage.read(layout.latest_hint)) == (b"2", b"2")
    assert "tagCreateTime" not in json.loads(storage.read(layout.snapshot(2)))


def test_a_tag_of_a_history_that_was_rolled_back_is_gone_back_to_as_latest_only():
    rows = shop()
    table, handle = rows.table, rows.table._handle
    table.tags.create("old", snapshot=4)
    content = handle.storage.read(handle.layout.tag("old"))
    table.rollback(snapshot=3, force=True, as_latest=False)
    handle.storage.create(handle.layout.tag("old"), content)  # as another engine would leave it
    rows.commit(("+I", 1, "new"))
    with pytest.raises(lake.InvalidRequestError, match="of a history that was rolled back"):
        table.rollback(tag="old", as_latest=False)
    table.rollback(tag="old", as_latest=True)
    assert value(table) == "v4"


def test_the_hints_of_other_engines_are_right_after_a_rollback():
    table = shop().table
    storage, layout = table._handle.storage, table._handle.layout
    table.rollback(snapshot=2, as_latest=False)
    assert storage.read(layout.latest_hint) == b"2"


def test_changelogs_behind_the_target_go():
    table = shop().table
    storage, layout = table._handle.storage, table._handle.layout
    table.tags.create("two", snapshot=2)
    for number in (1, 2, 3):
        content = read_snapshot(storage, layout, number).to_json()
        storage.overwrite(layout.changelog(number), content)
    changelogs = numbered_changelogs(storage, layout)
    changelogs.write_latest_hint(3)
    assert table.rollback(snapshot=2, as_latest=False).removed_changelogs == (3,)
    assert (changelogs.ids(), changelogs.latest_id()) == ([1, 2], 2)


def test_a_rollback_keeps_history_unless_somebody_says_otherwise_and_can_be_taken_back():
    table = shop().table
    planned = table.rollback(snapshot=2, dry_run=True)
    assert (planned.snapshot_id, ids(table)) == (5, [1, 2, 3, 4])
    report = table.rollback(snapshot=2)
    assert (report.snapshot_id, ids(table), value(table)) == (5, [1, 2, 3, 4, 5], "v2")
    head, target = table.latest_snapshot(), table.snapshots()[1]
    for member in ("schema_id", "total_record_count", "watermark", "index_manifest"):
        assert getattr(head, member) == getattr(target, member), member
    assert (head.commit_kind, head.commit_identifier) == ("OVERWRITE", 2**63 - 1)
    table.rollback(snapshot=4, as_latest=True)
    assert value(table) == "v4"


def test_as_latest_on_what_is_there_does_nothing():
    table = shop().table
    assert table.rollback(snapshot=4, as_latest=True).snapshot_id == 4
    assert (ids(table), table.tags.list()) == ([1, 2, 3, 4], [])


class WriteMeanwhile:
    """Runs the units of a compaction after another write."""

    def __init__(self, rows: KeyedRows) -> None:
        self.rows = rows
        self.written = 0

    def outcomes(self, work, units, stop):
        if not self.written:
            self.written = self.rows.commit(("+I", 1, "newer"))
        yield from map(work, units)


POSTPONED = {
    "bucket": "-2",
    "postpone.merge-on-read": "true",
    "postpone.default-bucket-num": "1",
}


@pytest.mark.parametrize("dry_run", [True, False])
def test_postponed_rows_that_would_come_back_behind_newer_ones_are_refused(dry_run):
    rows = shop(1, **POSTPONED)
    meanwhile = WriteMeanwhile(rows)
    rows.table.compact(executor=meanwhile)  # moves the first file only
    count = len(ids(rows.table))
    with pytest.raises(lake.InvalidRequestError, match=r"Nothing was changed\. Compact the table"):
        rows.table.rollback(snapshot=meanwhile.written, dry_run=dry_run)
    assert len(ids(rows.table)) == count
    rows.table.compact()
    rows.table.rollback(snapshot=meanwhile.written, dry_run=dry_run)
    assert value(rows.table) == "newer"
    rows.table.compact()
    assert value(rows.table) == "newer"


def test_postponed_rows_come_back_before_and_behind_those_that_are_kept_or_of_other_partitions():
    rows = KeyedRows(POSTPONED, partitioned=True)
    rows.commit(("+I", "a", 1, "a1"))
    rows.commit(("+I", "b", 1, "b2"))
    rows.commit(("+I", "a", 1, "a3"))
    rows.table.compact(partitions=[{"p": "a"}])
    rows.commit(("+I", "b", 1, "b4"))
    rows.table.rollback(snapshot=3)  # restores files that were written before and after a file of b
    assert sorted(row["v"] for row in rows.table.scan().to_arrow().to_pylist()) == ["a3", "b2"]


def test_files_brought_back_stay_when_what_deleted_them_expires():
    rows = shop()
    table = rows.table
    table.compact(executor="serial")
    report = table.rollback(snapshot=4, as_latest=True)
    assert (report.added_files, report.deleted_files) == (4, 1)
    tag = report.protection_tag
    assert [each.name for each in table.tags.list()] == [tag]
    rows.commit(("+I", 1, "more"))
    with pytest.raises(lake.InvalidRequestError, match="in use: a rollback restored files"):
        table.tags.delete(tag)
    for keep in (2, 1):
        table.expire_snapshots(retain_max=keep, retain_min=keep)
        assert missing(table) == set()
        assert value(table) == "more"
    table.tags.delete(tag, force=True)
    assert (missing(table), unneeded(table)) == (set(), set())
    assert value(table) == "more"


def test_the_protection_of_a_rollback_goes_once_every_older_snapshot_has_expired():
    rows = shop()
    table = rows.table
    table.compact(executor="serial")
    handle = table._handle
    real = handle.storage.list(handle.layout.snapshot_directory)[0].modified_millis
    rows.clock.millis = real
    table.rollback(snapshot=4, as_latest=True)
    table.expire_snapshots(**EXPIRE)
    assert table.tags.expire().deleted == ()  # the clocks are too near each other to be sure
    rows.clock.millis += 3_600_000
    rows.commit(("+I", 1, "more"))
    table.expire_snapshots(**EXPIRE)
    expired = table.tags.expire()
    assert len(expired.deleted) == 1
    assert (
        "because its retention time has passed or no rollback needs it any more" in expired.reason
    )
    assert (missing(table), unneeded(table)) == (set(), set())


def test_going_back_to_files_that_are_gone_is_refused_and_changes_nothing():
    table = shop().table
    table.compact(executor="serial")
    handle = table._handle
    for path in handle.storage.files():
        if "bucket-0/data-" in path and path not in live(table):
            handle.storage.delete(path)
    with pytest.raises(lake.CorruptTableError, match="2 of its files are missing, such as"):
        table.rollback(snapshot=2, as_latest=True)
    assert (ids(table), table.tags.list()) == ([1, 2, 3, 4, 5], [])


def test_a_damaged_newest_snapshot_names_the_rollback_that_does_not_read_it():
    rows = shop()
    storage, layout = rows.place
    newest = rows.table.latest_snapshot()
    assert newest is not None
    path = layout.manifest(newest.base_manifest_list)
    storage.overwrite(path, storage.read(path)[:100])
    with pytest.raises(lake.CorruptTableError, match=r"100 bytes.* \(--cut-history\)$"):
        rows.table.rollback(snapshot=3)
    rows.table.rollback(snapshot=3, as_latest=False)
    assert value(rows.table) == "v3"


def test_a_newest_snapshot_that_cannot_be_read_says_what_brings_the_table_back():
    rows = shop()
    storage, layout = rows.place
    storage.overwrite(layout.snapshot(4), b"")
    with pytest.raises(
        lake.CorruptTableError, match=r"move the file out of the directory.*`lake repair-hints`"
    ):
        rows.table.rollback(snapshot=3, as_latest=False)
    storage.delete(layout.snapshot(4))
    assert value(rows.table) == "v3"
    rows.commit(("+I", 1, "v5"))
    assert (value(rows.table), ids(rows.table)) == ("v5", [1, 2, 3, 4])


def live(table: lake.Table) -> set[str]:
    entries = plan_files(table._handle, table.latest_snapshot())
    return {table._handle.layout.data_file(each.bucket, each.file.file_name) for each in entries}


def test_a_commit_that_overtakes_a_rollback_as_latest_is_kept(monkeypatch):
    rows = shop()
    rows.table.compact(executor="serial")
    create, met = MemoryStorage.create, []

    def with_rival(storage, path, content):
        if path.endswith("snapshot-6") and not met:
            met.append(path)
            rows.commit(("+I", 2, "rival"))
        return create(storage, path, content)

    monkeypatch.setattr(MemoryStorage, "create", with_rival)
    with pytest.raises(
        lake.CommitConflictError, match="another program committed or rolled back meanwhile"
    ):
        rows.table.rollback(snapshot=2, as_latest=True)
    assert rows.table.tags.list() == []
    assert unneeded(rows.table) == set()
    assert rows.table.scan().count() == 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("newer", [True, False])
def test_a_newest_snapshot_that_goes_during_a_rollback_is_a_conflict(monkeypatch, when, newer):
    rows = shop()
    rows.table.tags.create("kept", snapshot=2)
    planned = plan_return

    def with_rival(*arguments):
        plan = planned(*arguments) if when == "after" else None
        if newer:
            rows.commit(("+I", 2, "rival"))
            rows.table.expire_snapshots(**EXPIRE)
        else:
            rows.table.rollback(snapshot=3, as_latest=False)
            rows.table.remove_orphans(
                dry_run=False, older_than="0 ms", allow_younger=True, max_share=1
            )
        return plan or planned(*arguments)

    monkeypatch.setattr("lakeformat.paimon.rollback.rollback.plan_return", with_rival)
    with pytest.raises(
        lake.CommitConflictError, match="another program committed or rolled back meanwhile"
    ):
        rows.table.rollback(tag="kept")
    assert [tag.name for tag in rows.table.tags.list()] == ["kept"]
    assert value(rows.table, where="k = 1") == ("v4" if newer else "v3")


def test_a_tag_that_is_deleted_while_history_is_cut_to_it_is_a_conflict(monkeypatch):
    rows = shop()
    rows.table.tags.create("kept", snapshot=2)
    rows.table.expire_snapshots(**EXPIRE)

    def with_rival(storage, layout, name):
        rows.table.tags.delete("kept")
        return snapshot_content(storage, layout, name)

    monkeypatch.setattr("lakeformat.paimon.rollback.cut.snapshot_content", with_rival)
    before = rows.table.latest_snapshot()
    with pytest.raises(lake.CommitConflictError, match=r"tag 'kept' .* was deleted or replaced"):
        rows.table.rollback(tag="kept", as_latest=False)
    assert rows.table.latest_snapshot() == before


class Meets(MemoryStorage):
    """A storage on which something happens right before, or after, a snapshot is published."""

    def __init__(self, inner: MemoryStorage, number: int, before=None, after=None) -> None:
        self.__dict__.update(inner.__dict__)
        self._met, self._number, self._before, self._after = [], number, before, after

    def create(self, path: str, content: bytes) -> bool:
        meets = path.endswith(f"snapshot/snapshot-{self._number}") and not self._met
        if meets:
            self._met.append(path)
            if self._before:
                self._before()
        done = super().create(path, content)
        if meets and self._after:
            self._after()
        return done


def writer_that_meets(rows: KeyedRows, **what) -> lake.Table:
    handle = rows.table._handle
    return load_table(Meets(handle.storage, 5, **what), handle.layout, handle.environment)


def write(table: lake.Table, value: str) -> None:
    table.write(pa.table({"k": pa.array([2], pa.int32()), "v": [value]}))


def both(table: lake.Table) -> dict[int, str]:
    return {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def test_a_commit_whose_base_is_rolled_back_before_it_publishes_is_made_again_on_what_is_left():
    rows = shop()
    late = writer_that_meets(rows, before=lambda: rows.table.rollback(snapshot=2, as_latest=False))
    write(late, "late")
    assert (ids(rows.table), both(rows.table)) == ([1, 2, 3], {1: "v2", 2: "late"})
    assert missing(rows.table) == set()


def test_a_commit_that_was_published_on_what_is_rolled_back_goes_with_it_and_is_made_again():
    rows = shop()
    late = writer_that_meets(rows, after=lambda: rows.table.rollback(snapshot=2, as_latest=False))
    write(late, "late")
    assert (ids(rows.table), both(rows.table)) == ([1, 2, 3], {1: "v2", 2: "late"})


def test_numbers_used_again_below_a_commit_under_way_bring_nothing_back():
    """Its base has the expected number, but is another snapshot."""
    rows = shop()

    def roll_back_and_go_on() -> None:
        rows.table.rollback(snapshot=2, as_latest=False)
        rows.commit(("+I", 1, "new 3"))
        rows.commit(("+I", 1, "new 4"))

    write(writer_that_meets(rows, before=roll_back_and_go_on), "late")
    assert ids(rows.table) == [1, 2, 3, 4, 5]
    assert both(rows.table) == {1: "new 4", 2: "late"}
    assert missing(rows.table) == set()


def test_a_base_that_expires_at_the_last_moment_is_no_rollback():
    rows = shop()

    def expire() -> None:
        handle = rows.table._handle
        for number in (1, 2, 3, 4):
            handle.storage.delete(handle.layout.snapshot(number))

    write(writer_that_meets(rows, after=expire), "late")
    assert ids(rows.table) == [5]


class MeetsTheFence(MemoryStorage):
    """A storage on which something happens right before, or after, the first fence is written."""

    def __init__(self, inner: MemoryStorage, before=None, after=None) -> None:
        self.__dict__.update(inner.__dict__)
        self._met, self._before, self._after = [], before, after

    def create(self, path: str, content: bytes) -> bool:
        meets = "/.fence-" in path and not self._met
        if meets:
            self._met.append(path)
            if self._before:
                self._before()
        is_created = super().create(path, content)
        if meets and self._after:
            self._after()
        return is_created


def roll_back_meeting(rows: KeyedRows, **what) -> None:
    handle = rows.table._handle
    storage = MeetsTheFence(handle.storage, **what)
    table = load_table(storage, handle.layout, handle.environment)
    table.rollback(snapshot=2, as_latest=False, force=True)


def test_an_expiry_that_announces_the_target_before_the_fence_is_up_ends_the_rollback():
    rows = shop()
    rows.table.tags.create("three", snapshot=3)
    handle = rows.table._handle

    def announces() -> None:
        going = [read_snapshot(handle.storage, handle.layout, number) for number in (1, 2, 3)]
        announce(handle, going, 4)

    with pytest.raises(lake.CommitConflictError, match=r"snapshot 2 of .* is expiring"):
        roll_back_meeting(rows, before=announces)
    assert ids(rows.table) == [1, 2, 3, 4]
    assert [tag.name for tag in rows.table.tags.list()] == ["three"]
    names = [info.name for info in handle.storage.list(handle.layout.snapshot_directory)]
    assert not [name for name in names if name.startswith(".fence-")]


def test_an_expiry_behind_the_fence_lets_the_target_live_whoever_commits_meanwhile():
    rows, reports = shop(), []

    def commits_and_expires() -> None:
        rows.commit(("+I", 1, "late"))
        reports.append(rows.table.expire_snapshots(**EXPIRE))

    roll_back_meeting(rows, after=commits_and_expires)
    assert reports[0].snapshots == ()
    assert "a rollback is running" in reports[0].reason
    assert (ids(rows.table), value(rows.table)) == ([1, 2], "v2")


@pytest.mark.parametrize("commit", [None, lake.CommitId("run", 1)], ids=["anonymous", "identified"])
def test_one_that_fails_before_anything_went_does_not_hold_up_the_expiry_that_makes_room(commit):
    rows = shop()
    handle = rows.table._handle

    class Full(MemoryStorage):
        def __init__(self) -> None:
            self.__dict__.update(handle.storage.__dict__)

        def overwrite(self, path: str, content: bytes) -> None:
            if path.endswith("/LATEST"):
                raise lake.UnavailableError("the disk is full")
            super().overwrite(path, content)

    table = load_table(Full(), handle.layout, handle.environment)
    with pytest.raises(lake.UnavailableError, match="full"):
        table.rollback(snapshot=2, as_latest=False, commit=commit)
    assert ids(rows.table) == [1, 2, 3, 4]
    assert rows.table.expire_snapshots(**EXPIRE).snapshots == (1, 2, 3)


def test_a_rollback_that_was_suspended_for_a_day_removes_nothing():
    """Its fence counts as abandoned by then, and its target may have expired."""
    rows = shop()

    def sleeps() -> None:
        rows.clock.millis += 24 * 60 * 60 * 1000

    with pytest.raises(lake.CommitConflictError, match="took so long that its target"):
        roll_back_meeting(rows, after=sleeps)
    assert ids(rows.table) == [1, 2, 3, 4]
    assert (value(rows.table), value(rows.table, snapshot=2)) == ("v4", "v2")
