"""``table.tags``: kept files, files deleted with a tag, and refusals."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.deletion import protection as protection_of_files
from lakeformat.paimon.deletion.intent import announce, withdraw
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.table import load_table
from lakeformat.paimon.tags.create import utc_now
from lakeformat.storage import MemoryStorage
from lakeformat.tables.removal import Removal
from tests.expired import files_of_tables, missing, unneeded
from tests.keyed_rows import KeyedRows

EXPIRE = {"retain_max": 1, "retain_min": 1}


def shop(commits: int = 4, **options: str) -> KeyedRows:
    """A table in which each commit replaces the rows of the one before."""
    rows = KeyedRows(options)
    for number in range(1, commits + 1):
        rows.commit(("+I", 1, f"v{number}"))
        rows.table.compact(executor="serial")
    return rows


def values(table: lake.Table, **when) -> list[str]:
    return [row["v"] for row in table.scan(**when).to_arrow().to_pylist()]


def names(table: lake.Table) -> list[str]:
    return [tag.name for tag in table.tags.list()]


def test_a_tag_keeps_a_snapshot_readable_after_it_has_expired():
    table = shop().table
    report = table.tags.create("first", snapshot=1)
    assert (report.action, report.snapshot_id) == ("created", 1)
    table.expire_snapshots(**EXPIRE)
    assert values(table, tag="first") == ["v1"]
    assert missing(table) == set()


def test_without_saying_which_the_newest_snapshot_is_tagged():
    table = shop().table
    assert table.tags.create("now").snapshot_id == table.latest_snapshot().id


def test_a_snapshot_is_named_by_time_watermark_or_another_tag():
    rows = KeyedRows()
    for number in (1, 2, 3):
        rows.commit(("+I", number, "x"), watermark=number * 10)
    tags = rows.table.tags
    assert tags.create("a", at_or_after=60_001).snapshot_id == 2
    assert tags.create("b", watermark=25).snapshot_id == 3
    assert tags.create("c", tag="a").snapshot_id == 2
    with pytest.raises(lake.NotFoundError, match="no snapshot with watermark 99 or later"):
        tags.create("d", watermark=99)
    with pytest.raises(lake.InvalidRequestError, match="pass only one of snapshot=1, tag='a'"):
        tags.create("d", snapshot=1, tag="a")


def test_a_snapshot_that_only_a_tag_keeps_can_be_tagged_again():
    table = shop().table
    table.tags.create("first", snapshot=1)
    table.expire_snapshots(**EXPIRE)
    assert table.tags.create("again", snapshot=1).snapshot_id == 1
    table.tags.delete("first")
    assert values(table, tag="again") == ["v1"]


def test_a_name_that_is_taken_is_refused_or_kept():
    table = shop().table
    table.tags.create("v", snapshot=1)
    with pytest.raises(lake.AlreadyExistsError, match="already has a tag 'v' of snapshot 1"):
        table.tags.create("v", snapshot=2)
    assert table.tags.create("v", snapshot=2, exist_ok=True).action == "kept"
    assert table.tags.replace("v", snapshot=2).reason == "tag 'v' moved from snapshot 1 to 2"
    assert [tag.snapshot_id for tag in table.tags.list()] == [2]


def test_a_replacement_may_change_the_retention_time_alone():
    table = shop().table
    table.tags.create("v", snapshot=1)

    def reason(**arguments):
        return table.tags.replace("v", snapshot=1, **arguments).reason

    assert reason(retain="7 d", dry_run=True) == "tag 'v' would keep snapshot 1 for 7 d"
    assert reason(retain="36 h") == "tag 'v' keeps snapshot 1 for 36 h"
    assert reason() == "tag 'v' keeps snapshot 1 without a time limit"


def test_a_tag_gets_another_name():
    table = shop().table
    table.tags.create("a", snapshot=1)
    table.tags.create("b", snapshot=2)
    with pytest.raises(lake.AlreadyExistsError):
        table.tags.rename("a", "b")
    table.tags.rename("a", "c")
    assert names(table) == ["b", "c"]
    assert values(table, tag="c") == ["v1"]


@pytest.mark.parametrize("retain", ["soon", "0 s", timedelta(0), 7, "-1 d"])
def test_a_time_to_keep_a_tag_that_is_none_is_refused(retain):
    with pytest.raises(lake.InvalidRequestError, match=r"retain (is|must be)"):
        shop().table.tags.create("v", retain=retain)


def test_a_tag_of_nothing_and_of_what_is_not_there_is_refused():
    with pytest.raises(lake.NotFoundError, match="no snapshot yet"):
        KeyedRows().table.tags.create("v")
    with pytest.raises(lake.NotFoundError, match="snapshot 99"):
        shop().table.tags.create("v", snapshot=99)


def test_deleting_a_tag_removes_exactly_what_only_it_held():
    table = shop(commits=6).table
    for number in (2, 4, 6):
        table.tags.create(f"t{number}", snapshot=number)
    table.tags.create("twin", snapshot=4)
    table.expire_snapshots(**EXPIRE)
    kept = {name: values(table, tag=name) for name in names(table)}
    for name in ("t4", "t2", "twin", "t6"):
        planned: list[Removal] = []
        table.tags.delete(name, dry_run=True, on_progress=planned.append)
        before, gone = files_of_tables(table), list[Removal]()
        report = table.tags.delete(name, on_progress=gone.append)
        assert [each.path for each in gone] == [each.path for each in planned]
        assert before - files_of_tables(table) == {each.path for each in gone}
        assert sum(report.files.values()) == len(gone)
        assert (len(gone) > 0) == (name != "t4")  # whose snapshot has another tag
        assert all(name in each.reason for each in gone)
        assert (unneeded(table), missing(table)) == (set(), set())
        del kept[name]
        assert {each: values(table, tag=each) for each in names(table)} == kept
    assert values(table) == ["v6"]


def test_deleting_a_tag_whose_snapshot_is_there_removes_no_other_file():
    table = shop().table
    table.tags.create("v", snapshot=2)
    before = files_of_tables(table)
    table.tags.delete("v")
    assert files_of_tables(table) == before


def test_a_missing_tag_is_not_reported_as_deleted():
    table = shop(commits=1).table
    table.tags.create("v")
    assert table.tags.delete("none", missing_ok=True).deleted == ()
    assert table.tags.delete("v", "none", missing_ok=True).deleted == ("v",)


def test_a_dry_run_does_not_log_that_a_tag_was_deleted(caplog):
    table = shop(commits=2).table
    table.tags.create("v", snapshot=1)
    table.expire_snapshots(**EXPIRE)
    caplog.set_level("INFO")
    table.tags.delete("v", dry_run=True)
    assert "deleted tag" not in caplog.text
    table.tags.delete("v")
    assert "deleted tag 'v'" in caplog.text


def test_a_tag_of_a_number_that_was_used_again_is_of_the_old_snapshot():
    """After a rollback the number is of other rows, and the tag alone has the old ones."""
    rows = shop(commits=3)
    table = rows.table
    table.tags.create("old", snapshot=5)
    handle = table._handle
    content = handle.storage.read(handle.layout.tag("old"))
    table.rollback(snapshot=4, force=True, as_latest=False)
    handle.storage.create(handle.layout.tag("old"), content)  # as another engine would leave it
    rows.commit(("+I", 1, "new"))
    assert table.latest_snapshot().id == 5
    assert values(table, tag="old") == ["v3"]
    assert table.tags.delete("old").files["data"] == 1
    assert missing(table) == set()
    assert values(table) == ["new"]


def test_an_unknown_tag_is_refused_by_name_before_anything_is_deleted():
    table = shop().table
    table.tags.create("v", snapshot=1)
    with pytest.raises(lake.NotFoundError, match="has no tag 'w'; its tags are 'v'"):
        table.tags.delete("v", "w")
    assert names(table) == ["v"]
    table.tags.create("before-migration", snapshot=1)
    with pytest.raises(lake.NotFoundError, match="did you mean 'before-migration'"):
        table.changes("before-migraton")


def test_a_tag_a_branch_began_at_is_in_use():
    table = shop().table
    table.tags.create("v", snapshot=1)
    table.branches.create("dev", tag="v")
    for change in (table.tags.delete, table.tags.replace):
        with pytest.raises(lake.InvalidRequestError, match="in use: branch 'dev' began at"):
            change("v")
    table.expire_snapshots(**EXPIRE)
    table.tags.delete("v", force=True)
    assert missing(table) == set()
    assert values(lake.open_table(table.location, branch="dev")) == ["v1"]


def test_tags_go_when_their_time_is_over():
    rows = shop()
    tags = rows.table.tags
    tags.create("short", snapshot=1, retain="1 h")
    tags.create("long", snapshot=2, retain=timedelta(days=1))
    tags.create("ever", snapshot=3)
    [ever, long, short] = tags.list()
    assert (ever.expires, short.retained) == (None, timedelta(hours=1))
    then = utc_now(rows.table._handle) + timedelta(days=1)
    assert long.expires == then.isoformat(" ", "milliseconds")
    rows.clock.millis += 2 * 3_600_000
    assert tags.expire(dry_run=True).deleted == ("short",)
    assert tags.expire().deleted == ("short",)
    assert tags.expire().reason == "no tag has expired; the table has 2 tags"
    assert names(rows.table) == ["ever", "long"]


def test_tags_made_before_a_time_go_if_somebody_says_so():
    rows = shop()
    tags = rows.table.tags
    tags.create("old", snapshot=1, retain="30 d")
    rows.clock.millis += 3_600_000
    tags.create("new", snapshot=2, retain="30 d")
    assert tags.expire(older_than=rows.clock.millis).deleted == ("old",)
    with pytest.raises(lake.InvalidRequestError, match="in the future"):
        tags.expire(older_than=rows.clock.millis + 1)


def test_an_expired_tag_at_which_a_branch_began_is_kept():
    rows = shop()
    tags = rows.table.tags
    tags.create("held", snapshot=1, retain="1 h")
    tags.create("long", snapshot=2, retain="1 d")
    rows.table.branches.create("dev", tag="held")
    rows.clock.millis += 2 * 3_600_000
    assert tags.expire().reason == (
        "kept 1 expired tag at which branches began; the table has 2 tags"
    )


def test_the_table_says_how_long_tags_are_kept_and_whether_they_expire():
    rows = shop(**{"tag.default-time-retained": "1 h", "tag.time-expire-enabled": "false"})
    rows.table.tags.create("v")
    assert rows.table.tags.list()[0].retained == timedelta(hours=1)
    rows.clock.millis += 2 * 3_600_000
    assert rows.table.tags.expire().deleted == ()


def test_a_success_file_tells_others_of_a_tag():
    table = shop(**{"tag.create-success-file": "true"}).table
    table.tags.create("v")
    handle = table._handle
    path = handle.layout.tag_success_file("v")
    now = handle.environment.now_millis()
    assert json.loads(handle.storage.read(path)) == {
        "creationTime": now,
        "modificationTime": now,
    }
    assert names(table) == ["v"]
    table.tags.delete("v")
    assert not handle.storage.exists(path)


def test_a_tag_of_a_snapshot_that_is_expiring_fails_and_is_not_there():
    table = shop().table
    handle = table._handle
    intent = announce(handle, [read_snapshot(handle.storage, handle.layout, 1)], 2)
    with pytest.raises(lake.CommitConflictError, match=r"snapshot 1 of .* is expiring"):
        table.tags.create("v", snapshot=1)
    assert names(table) == []
    withdraw(handle, intent)
    table.tags.create("v", snapshot=1)


def test_tags_of_a_branch_are_its_own():
    table = shop().table
    table.branches.create("dev", snapshot=2)
    dev = lake.open_table(table.location, branch="dev")
    dev.tags.create("v")
    assert (names(table), names(dev)) == ([], ["v"])
    dev.tags.delete("v")
    assert missing(table) == set()


def hourly(rows: KeyedRows, *hours: float) -> None:
    for hour in hours:
        rows.clock.millis = int(hour * 3_600_000) - 60_000  # a commit is a minute later
        rows.commit(("+I", 1, f"{hour}"))


def test_automatic_tags_are_made_once_and_the_oldest_go():
    rows = KeyedRows(
        {
            "tag.automatic-creation": "process-time",
            "tag.creation-period": "hourly",
            "tag.num-retained-max": "2",
        }
    )
    tags = rows.table.tags
    hourly(rows, 1.5, 2.5, 2.75)
    assert tags.create_due(dry_run=True).created == ("1970-01-01 00", "1970-01-01 01")
    assert names(rows.table) == []
    assert tags.create_due().created == ("1970-01-01 00", "1970-01-01 01")
    assert tags.create_due().reason == "no tag is due"
    hourly(rows, 3.5)
    report = tags.create_due()
    assert (report.created, report.deleted) == (("1970-01-01 02",), ("1970-01-01 00",))
    assert [tag.snapshot_id for tag in tags.list()] == [2, 4]


def test_a_dry_run_lists_a_due_tag_that_would_be_deleted_at_once():
    rows = KeyedRows(
        {
            "tag.automatic-creation": "process-time",
            "tag.creation-period": "hourly",
            "tag.num-retained-max": "1",
        }
    )
    tags = rows.table.tags
    hourly(rows, 1.5, 2.5)
    plan = tags.create_due(dry_run=True)
    assert (plan.deleted, names(rows.table)) == (("1970-01-01 00",), [])
    report = tags.create_due()
    assert (report.created, report.deleted) == (plan.created, plan.deleted)


def test_a_dry_run_counts_a_batch_tag_at_its_new_place():
    rows = KeyedRows({"tag.automatic-creation": "batch", "tag.num-retained-max": "1"})
    tags = rows.table.tags
    rows.commit(("+I", 1, "a"))
    [batch] = tags.create_due().created
    rows.commit(("+I", 1, "b"))
    tags.create("v2")
    rows.commit(("+I", 1, "c"))
    plan = tags.create_due(dry_run=True)
    assert (plan.created, plan.deleted) == ((batch,), ("v2",))
    assert tags.create_due().deleted == plan.deleted


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_a_batch_tag_is_newer_than_another_tag_at_its_snapshot(name):
    rows = KeyedRows({"tag.automatic-creation": "batch", "tag.num-retained-max": "1"})
    tags = rows.table.tags
    rows.commit(("+I", 1, "a"))
    tags.create(name)
    plan = tags.create_due(dry_run=True)
    assert plan.deleted == (name,)
    report = tags.create_due()
    assert (report.created, report.deleted) == (plan.created, plan.deleted)
    tags.create(name)
    assert tags.create_due().deleted == (name,)
    assert names(rows.table) == [*plan.created]


def test_automatic_tags_by_watermark_wait_for_one():
    rows = KeyedRows({"tag.automatic-creation": "watermark"})
    rows.commit(("+I", 1, "a"))
    assert rows.table.tags.create_due().created == ()
    rows.commit(("+I", 1, "b"), watermark=3 * 86_400_000)
    assert rows.table.tags.create_due().created == ("1970-01-03",)


@pytest.mark.parametrize("millis", [253_402_300_799_999, 2**62])
def test_a_watermark_after_the_year_9999_is_refused(millis):
    options = {"tag.automatic-creation": "watermark", "sink.watermark-time-zone": "Asia/Tokyo"}
    rows = KeyedRows(options)
    rows.commit(("+I", 1, "a"), watermark=millis)
    with pytest.raises(lake.InvalidRequestError, match="only the years 1 to 9999"):
        rows.table.tags.create_due()


def test_a_batch_tag_is_of_the_newest_snapshot_of_the_day():
    rows = KeyedRows({"tag.automatic-creation": "batch", "tag.num-retained-max": "1"})
    hourly(rows, 1, 2)
    tags = rows.table.tags
    assert tags.create_due().created == ("batch-write-1970-01-01",)
    assert tags.create_due().created == ()
    hourly(rows, 3)
    assert tags.create_due().created == ("batch-write-1970-01-01",)
    assert [tag.snapshot_id for tag in tags.list()] == [3]
    hourly(rows, 25)
    assert tags.create_due().deleted == ("batch-write-1970-01-01",)
    assert names(rows.table) == ["batch-write-1970-01-02"]


def test_one_snapshot_has_one_automatic_tag():
    rows = KeyedRows({"tag.automatic-creation": "process-time"})
    hourly(rows, 25)
    rows.table.tags.create_due()
    with pytest.raises(lake.InvalidRequestError, match="a name for automatic tags"):
        rows.table.tags.create("1971-01-01", snapshot=1)
    rows.table.tags.create("mine", snapshot=1)


def test_a_table_without_automatic_tags_says_so():
    with pytest.raises(lake.InvalidRequestError, match=r"tag\.automatic-creation"):
        shop().table.tags.create_due()


def test_metadata_has_no_tags_of_its_own():
    table = shop().table
    for ask in (lambda t: t.tags, lambda t: t.branches, lambda t: t.rollback(snapshot=1)):
        with pytest.raises(lake.UnsupportedError, match="is read-only"):
            ask(table.system_table("files"))


def test_reports_are_plain_values():
    table = shop().table
    reports = [
        table.tags.create("v", snapshot=1, retain="1 d"),
        *table.tags.list(),
        table.tags.delete("v"),
    ]
    assert all(json.loads(json.dumps(each.to_dict())) for each in reports)
    assert list(itertools.chain(table.tags.list())) == []


def returned(commits_after: int) -> KeyedRows:
    """A rollback has brought files back, which a later commit took out again."""
    rows = KeyedRows(keyed=False)
    rows.commit(("+I", 1, "old"))
    rows.table.truncate()
    rows.table.rollback(snapshot=1)
    rows.table.truncate()
    for number in range(commits_after):
        rows.commit(("+I", 2, f"v{number}"))
    return rows


def test_without_the_protection_of_a_rollback_expiry_finds_what_came_back_among_few_snapshots():
    table = returned(3).table
    [protection] = names(table)
    table.tags.delete(protection, force=True)
    table.expire_snapshots(retain_max=5, retain_min=5, limit=2)
    assert values(table, snapshot=3) == ["old"]
    assert missing(table) == set()


@pytest.mark.parametrize(
    "lose",
    [
        lambda tags, name: tags.delete(name, force=True),
        lambda tags, name: tags.replace(name, force=True),
    ],
    ids=["deleted", "replaced"],
)
def test_among_more_it_would_not_so_the_protection_stays_whoever_insists(lose, monkeypatch):
    monkeypatch.setattr(protection_of_files, "LATER_SNAPSHOTS", 1)
    table = returned(3).table
    [protection] = names(table)
    with pytest.raises(
        lake.InvalidRequestError, match=r"even with force=True: .* only 1 of \d+ snapshots"
    ):
        lose(table.tags, protection)
    table.expire_snapshots(retain_max=5, retain_min=5, limit=2)
    assert values(table, snapshot=3) == ["old"]


def test_the_protection_of_a_rollback_is_not_replaced_by_the_way():
    table = returned(1).table
    [protection] = names(table)
    with pytest.raises(lake.InvalidRequestError, match="a rollback restored files"):
        table.tags.replace(protection)


def test_an_expiry_in_the_middle_of_a_replacement_leaves_the_tag_what_it_was():
    """The new snapshot expires, so it is refused; the old one must be kept all the time."""
    rows = shop()
    rows.table.tags.create("good", snapshot=3)
    handle, met = rows.table._handle, []

    class Expires(MemoryStorage):
        def overwrite(self, path: str, content: bytes) -> None:
            super().overwrite(path, content)
            if path.endswith("/tag-good"):
                meets()

        def create(self, path: str, content: bytes) -> bool:
            made = super().create(path, content)
            if "/tag-replacing-" in path:
                meets()
            return made

    def meets() -> None:
        """An expiry that looked for tags before ours was there, and removes what it saw go."""
        if not met:
            met.append(True)
            going = [read_snapshot(handle.storage, handle.layout, n) for n in (1, 2)]
            announce(handle, going, 3)
            rows.table.expire_snapshots(**EXPIRE)

    storage = Expires()
    storage.__dict__.update(handle.storage.__dict__)
    table = load_table(storage, handle.layout, handle.environment)
    with pytest.raises(lake.CommitConflictError, match=r"snapshot 1 of .* has expired meanwhile"):
        table.tags.replace("good", snapshot=1)
    assert met
    assert [(tag.name, tag.snapshot_id) for tag in table.tags.list()] == [("good", 3)]
    assert values(rows.table, tag="good") == ["v2"]
    assert missing(rows.table) == set()


def test_a_tag_that_is_deleted_while_it_is_renamed_has_no_new_name():
    """Its files are deleted with it: the new name could not be read."""
    rows = shop()
    rows.table.tags.create("old", snapshot=1)
    rows.table.expire_snapshots(**EXPIRE)
    handle, met = rows.table._handle, []

    class Deletes(MemoryStorage):
        def create(self, path: str, content: bytes) -> bool:
            if path.endswith("/tag-new"):
                met.append(path)
                rows.table.tags.delete("old")
            return super().create(path, content)

    storage = Deletes()
    storage.__dict__.update(handle.storage.__dict__)
    table = load_table(storage, handle.layout, handle.environment)
    with pytest.raises(
        lake.CommitConflictError, match="was deleted or replaced meanwhile, so tag 'new'"
    ):
        table.tags.rename("old", "new")
    assert met
    assert names(table) == []
    assert missing(table) == set()


def test_a_name_has_as_many_bytes_as_every_storage_takes(tmp_path):
    catalog = lake.open_catalog(tmp_path)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    table.write(pa.table({"id": [1]}))

    table.tags.create("x" * 204)
    table.tags.rename("x" * 204, "y" * 204)
    table.tags.delete("y" * 204)
    table.consumers.set("c" * 204, next_snapshot=1)
    for name in ("x" * 205, "é" * 103):
        with pytest.raises(lake.InvalidRequestError, match=r"is too long: .* more than 204 bytes"):
            table.tags.create(name)


def test_a_longer_name_that_another_program_gave_is_read():
    table = shop().table
    storage, layout = table._handle.storage, table._handle.layout
    table.tags.create("first")
    storage.overwrite(layout.tag("x" * 240), storage.read(layout.tag("first")))

    assert names(table) == ["first", "x" * 240]


def test_what_is_advised_for_a_damaged_tag_lets_it_be_created_again():
    table = shop().table
    storage, layout = table._handle.storage, table._handle.layout
    table.tags.create("first", snapshot=3)
    storage.overwrite(layout.tag("first"), storage.read(layout.tag("first"))[:20])

    with pytest.raises(
        lake.CorruptTableError, match=r"tag-first .*: move the file out of the directory"
    ):
        table.tags.delete("first")
    storage.delete(layout.tag("first"))
    table.tags.create("first", snapshot=3)
    assert values(table, tag="first") == values(table, snapshot=3)
