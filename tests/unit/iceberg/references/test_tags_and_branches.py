"""Tags and branches of Iceberg tables: what they name, what they refuse, and what they keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakeformat.environment import Environment
from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.updates import set_reference
from lakeformat.iceberg.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import NOW_MILLIS
from tests.unit.iceberg.path_table import appended, handle_on, names, path_table

DAY = 24 * 3600 * 1000


def add(storage: MemoryStorage, number: int, branch: str = "main", **summary: str) -> None:
    """Append snapshot ``number`` to a branch, a millisecond after the one before."""
    commit_metadata(
        handle_on(storage),
        lambda loaded: appended(
            loaded.metadata,
            f"s{number}",
            branch,
            snapshot_id=number,
            timestamp_ms=NOW_MILLIS + number,
            summary={"total-records": f"{number}0"} | summary,
        ),
    )


@pytest.fixture
def storage() -> MemoryStorage:
    """A table with the snapshots 1, 2 and 3."""
    storage = MemoryStorage("refs")
    path_table(storage)
    for number in (1, 2, 3):
        add(storage, number)
    return storage


@pytest.fixture
def table(storage) -> IcebergTable:
    return IcebergTable(handle_on(storage))


def published(storage: MemoryStorage) -> int:
    """The number of the newest metadata file: how many commits there were."""
    return int(storage.read("shop/orders/metadata/version-hint.text"))


def test_automatic_tags_are_refused_by_name(table):
    with pytest.raises(UnsupportedError, match=r"has no automatic tags: create tags on .* with"):
        table.tags.create_due()


def test_a_tag_names_the_newest_snapshot_or_a_chosen_one(table):
    assert table.tags.create("newest").snapshot_id == 3
    assert table.tags.create("by-id", snapshot=1).snapshot_id == 1
    assert table.tags.create("by-position", snapshot=table.position(2)).snapshot_id == 2
    assert table.tags.create("by-tag", tag="by-id").snapshot_id == 1
    assert table.tags.create("by-time", at_or_after=NOW_MILLIS + 2).snapshot_id == 2
    assert [(tag.name, tag.snapshot_id) for tag in table.tags.list()] == [
        ("by-id", 1),
        ("by-position", 2),
        ("by-tag", 1),
        ("by-time", 2),
        ("newest", 3),
    ]


def test_a_tag_of_a_listing_has_the_facts_of_its_snapshot(table):
    report = table.tags.create("week", snapshot=2, retain="7 d")
    assert report.to_dict() == {
        "table": "memory://refs/shop/orders",
        "tag": "week",
        "action": "created",
        "snapshot_id": 2,
        "retained_seconds": 7 * 24 * 3600.0,
        "reason": "tag 'week' created at snapshot 2 (sequence number 2, committed "
        "2023-11-14 22:13:20.002Z)",
        "dry_run": False,
    }
    [tag] = table.tags.list()
    assert tag.to_dict() == {
        "tag_name": "week",
        "snapshot_id": 2,
        "schema_id": 0,
        "commit_time": "2023-11-14T22:13:20.002",
        "record_count": 20,
        "time_retained": "PT168H",
        "expire_time": "2023-11-21T22:13:20.002",
    }
    assert table.references["week"] == Reference("week", 2, "tag", max_ref_age_ms=7 * DAY)


def test_a_tag_of_a_snapshot_with_delete_files_has_no_count_of_rows(storage, table):
    add(storage, 4, **{"total-delete-files": "1"})
    table.tags.create("deleted")
    [tag] = table.tags.list()
    assert tag.rows is None, "the snapshot counts deleted rows too"


def test_a_tag_is_replaced_renamed_and_deleted(table, storage):
    table.tags.create("v1", snapshot=1, retain=timedelta(days=1))
    assert table.tags.replace("v1").action == "replaced"
    assert table.references["v1"] == Reference("v1", 3, "tag")
    assert table.tags.replace("v1").action == "kept"
    renamed = table.tags.rename("v1", "v2").reason
    assert renamed.startswith("tag 'v2' renamed at snapshot 3 (sequence number 3, committed ")
    assert [tag.name for tag in table.tags.list()] == ["v2"]
    assert table.tags.delete("v2").deleted == ("v2",)
    assert table.tags.list() == []
    before = published(storage)
    assert table.tags.delete("v2", missing_ok=True).reason == "no tag to delete"
    assert published(storage) == before


def test_a_taken_name_is_refused_unless_the_tag_may_exist(table):
    table.tags.create("v1", snapshot=1)
    with pytest.raises(AlreadyExistsError, match="already has the tag 'v1', at snapshot 1"):
        table.tags.create("v1")
    assert table.tags.create("v1", exist_ok=True).action == "kept"
    with pytest.raises(AlreadyExistsError, match="already has the tag 'v1'"):
        table.branches.create("v1", exist_ok=True)
    with pytest.raises(InvalidRequestError, match="'main' is the name of the main branch"):
        table.tags.create("main")


@pytest.mark.parametrize("name", ["$x", "a$files"])
def test_a_new_branch_that_the_name_of_a_table_cannot_name_is_refused(table, storage, name):
    table.branches.create("dev")
    refused = r"must not contain '\$', because 'database\.table\$branch_.* Nothing was changed"
    for change in (table.branches.create, lambda new: table.branches.rename("dev", new)):
        with pytest.raises(InvalidRequestError, match=refused):
            change(name)
    assert [each.name for each in table.branches.list()] == ["dev"]
    assert table.tags.create(name + "t").action == "created"
    add(storage, 9, name)  # another program creates it
    assert table.branches.create(name, exist_ok=True).action == "kept"
    table.branches.rename(name, "new")
    assert [each.name for each in table.branches.list()] == ["dev", "new"]


def test_a_missing_tag_is_named_with_the_nearest_one(table):
    table.tags.create("release")
    with pytest.raises(
        NotFoundError, match=r"no tag 'relaese'; its tags are release; did you mean 'release'\?"
    ):
        table.tags.delete("release", "relaese")
    assert [tag.name for tag in table.tags.list()] == ["release"]
    with pytest.raises(NotFoundError, match=r"'main' is a branch of .*, not a tag"):
        table.tags.delete("main", missing_ok=True)
    with pytest.raises(NotFoundError, match="has no snapshot 99: it may have expired"):
        table.tags.create("v1", snapshot=99)
    with pytest.raises(UnsupportedError, match="have no watermarks: pass at_or_after"):
        table.tags.create("v1", watermark=5)


def test_a_table_without_snapshots_cannot_be_tagged_at_any_time():
    storage = MemoryStorage("empty")
    path_table(storage)
    with pytest.raises(NotFoundError, match="has no snapshot yet to tag or branch from: write to"):
        IcebergTable(handle_on(storage)).tags.create("v1", at_or_after=datetime.now(UTC))


def test_a_number_of_two_snapshots_is_refused():
    storage = MemoryStorage("numbers")
    path_table(storage)
    for number in (7, 1):
        add(storage, number)
    table = IcebergTable(handle_on(storage))
    assert table.tags.create("v7", snapshot=7).snapshot_id == 7
    told = r"1 names two .*snapshot 1 \(sequence number 2, .*snapshot 7 \(sequence number 1,"
    with pytest.raises(InvalidRequestError, match=told):
        table.tags.create("v1", snapshot=1)


def test_a_dry_run_changes_nothing(table, storage):
    before = published(storage)
    report = table.tags.create("v1", dry_run=True)
    assert report.action == "created"
    assert report.reason.startswith("tag 'v1' would be created at snapshot 3 (sequence number 3, ")
    assert table.branches.create("dev", dry_run=True).dry_run
    assert published(storage) == before


def test_a_branch_has_a_retention_of_its_own(table, storage):
    table.branches.create("dev", snapshot=2, min_snapshots_to_keep=5, max_snapshot_age="2 d")
    kept = Reference("dev", 2, "branch", min_snapshots_to_keep=5, max_snapshot_age_ms=2 * DAY)
    assert table.references["dev"] == kept
    add(storage, 4, "dev")
    [branch] = table.branches.list()
    assert (branch.snapshots, branch.first_snapshot, branch.last_snapshot) == (3, 1, 4)
    assert table.branches.rename("dev", "test").action == "renamed"
    assert table.branches.delete("test").deleted == ("test",)
    with pytest.raises(InvalidRequestError, match="must be at least 1, got 0"):
        table.branches.create("dev", min_snapshots_to_keep=0)


def test_main_receives_the_snapshots_of_a_branch_that_is_ahead(table, storage):
    table.branches.create("dev")
    assert "already has every" in table.branches.fast_forward("dev").reason
    add(storage, 4, "dev")
    add(storage, 5, "dev")
    assert table.branches.fast_forward("dev", dry_run=True).snapshots == (4, 5)
    assert names(handle_on(storage).load().metadata) == ["s1", "s2", "s3"]
    assert table.branches.fast_forward("dev").snapshots == (4, 5)
    metadata = handle_on(storage).load().metadata
    assert names(metadata) == ["s1", "s2", "s3", "s4", "s5"]
    assert metadata.snapshot_log[-1].snapshot_id == 5


def test_main_does_not_lose_commits_to_a_branch(table, storage):
    table.branches.create("dev")
    add(storage, 4)
    add(storage, 5, "dev")
    with pytest.raises(CommitConflictError, match="main has commits since the branch began"):
        table.branches.fast_forward("dev")


def at(storage: MemoryStorage, millis: int) -> IcebergTable:
    """The table as a process at another time has it."""
    return IcebergTable(handle_on(storage, Environment(now_millis=lambda: millis)))


def test_tags_expire_by_the_age_of_their_snapshots(storage, table):
    table.tags.create("forever", snapshot=1)
    table.tags.create("week", snapshot=2, retain="7 d")
    table.tags.create("day", snapshot=2, retain="1 d")
    table.branches.create("old", snapshot=1, retain="1 d")
    commits = published(storage)
    later = at(storage, NOW_MILLIS + 2 * DAY)
    assert later.tags.expire(dry_run=True).reason.startswith("would delete the tag 'day' because")
    assert published(storage) == commits
    assert later.tags.expire().deleted == ("day",)
    assert [each.name for each in later.tags.list()] == ["forever", "week"]
    assert "old" in later.references
    assert later.tags.expire().reason == "no tag has expired"
    assert published(storage) == commits + 1


def test_older_tags_expire_whatever_their_retention_is(storage, table):
    table.tags.create("first", snapshot=1)
    table.tags.create("third", snapshot=3)
    moment = datetime.fromtimestamp(NOW_MILLIS / 1000, UTC) + timedelta(milliseconds=2)
    later = at(storage, NOW_MILLIS + DAY)
    report = later.tags.expire(older_than=moment)
    assert report.deleted == ("first",)
    assert "the snapshot is older than 2023-11-14" in report.reason


def test_a_tag_with_the_largest_age_never_expires(storage, table):
    """Other programs write it for tags without an age."""
    tag = Reference("kept", 2, "tag", max_ref_age_ms=(1 << 63) - 1)
    commit_metadata(
        handle_on(storage), lambda loaded: set_reference(loaded.metadata, tag, NOW_MILLIS)
    )
    [found] = table.tags.list()
    assert (found.name, found.retained) == ("kept", None)
