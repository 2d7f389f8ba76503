"""``lake tag``, ``lake branch`` and ``lake rollback``: a line for people, JSON for programs."""

from __future__ import annotations

import json
import re
from functools import partial

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.lake_command import lake_refuses, lake_says

refuses = partial(lake_refuses, error=lake.LakeError)


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    """Three snapshots of shop.orders, of which the first has a tag."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for number in (1, 2, 3):
        table.write(pa.table({"id": [number]}))
    table.tags.create("v1", snapshot=1)
    return catalog


def test_tags_are_created_listed_moved_and_renamed(catalog):
    shown = lake_says(catalog, "tag", "create", "shop.orders", "now", "--retain", "7 d")
    assert shown == "tag 'now' is snapshot 3\n"
    assert "tag 'now' moved from snapshot 3 to 2" in lake_says(
        catalog, "tag", "replace", "shop.orders", "now", "--snapshot", "2"
    )
    lake_says(catalog, "tag", "rename", "shop.orders", "now", "then")
    shown = lake_says(catalog, "tag", "list", "shop.orders")
    assert [line.split()[:2] for line in shown.splitlines()[1:] if line.split()[0] != "─"][-2:] == [
        ["then", "2"],
        ["v1", "1"],
    ]
    [then, _] = json.loads(lake_says(catalog, "tag", "list", "shop.orders", "--json"))
    assert (then["tag_name"], then["snapshot_id"], then["record_count"]) == ("then", 2, 2)


@pytest.mark.parametrize(
    ("group", "plural", "more"),
    [
        ("tag", "tags", {"expire_time"}),
        (
            "branch",
            "branches",
            {"snapshot_count", "first_snapshot_id", "last_snapshot_id", "tag_count"},
        ),
        ("consumer", "consumers", {"progress_time", "behind", "is_stale"}),
    ],
)
def test_a_list_says_more_than_the_system_table_under_the_same_names(catalog, group, plural, more):
    table = catalog.table("shop.orders")
    table.tags.create("week", retain="7 d")
    table.branches.create("dev", snapshot=2)
    table.consumers.set("job", next_snapshot=2)
    listed = json.loads(lake_says(catalog, group, "list", "shop.orders", "--json"))
    rows = json.loads(lake_says(catalog, plural, "shop.orders", "--json"))
    assert [{k: v for k, v in each.items() if k not in more} for each in listed] == rows
    assert all(more <= each.keys() for each in listed)


def test_a_tag_is_made_of_another_one_by_either_spelling(catalog):
    for name, option in (("a", "--tag"), ("b", "--from-tag")):
        said = lake_says(catalog, "tag", "create", "shop.orders", name, option, "v1")
        assert said == f"tag '{name}' is snapshot 1\n"


@pytest.mark.parametrize("moment", ["1000000000000", "20010909"])
def test_a_time_is_milliseconds_or_a_date(catalog, moment):
    """Both are long before the first snapshot."""
    said = lake_says(catalog, "tag", "create", "shop.orders", "first", "--at-or-after", moment)
    assert said == "tag 'first' is snapshot 1\n"
    assert "has no snapshot" in refuses(catalog, "rollback", "shop.orders", "--as-of", moment)


def test_who_names_a_tag_like_a_snapshot_is_told_which_of_them_sql_takes(catalog):
    said = lake_says(catalog, "tag", "create", "shop.orders", "3", "--snapshot", "1")
    assert "VERSION AS OF '3' means a tag of this name, not snapshot 3" in said


def test_deleting_a_tag_says_which_files_go_and_why(catalog):
    table = catalog.table("shop.orders")
    table.compact(executor="serial")
    table.truncate()
    table.expire_snapshots(retain_max=1, retain_min=1)
    shown = lake_says(catalog, "tag", "delete", "shop.orders", "v1", "--dry-run")
    assert "only tag 'v1' (snapshot 1) referred to it" in shown
    assert "tag 'v1' would be deleted, and 3 files that only it needed" in shown
    delete = ("tag", "delete", "shop.orders", "v1")
    assert "deleting tag 'v1' of shop.orders with 3 files cannot be undone" in refuses(
        catalog, *delete
    )
    [report] = json.loads(lake_says(catalog, *delete, "--yes", "--json"))
    assert report["deleted"] == ["v1"]
    assert len(report["removals"]) == sum(report["files"].values()) > 0
    assert "has no tag 'v1'" in refuses(catalog, "tag", "delete", "shop.orders", "v1")
    lake_says(catalog, "tag", "delete", "shop.orders", "v1", "--missing-ok")


def test_tags_expire_and_are_made_on_a_schedule(catalog):
    said = lake_says(catalog, "tag", "expire", "shop.orders")
    assert said == "no tag has expired; the table has 1 tag\n"
    catalog.alter_table("shop.orders", lake.set_option("tag.automatic-creation", "batch"))
    shown = lake_says(catalog, "tag", "create-due", "shop.orders", "--dry-run")
    assert re.match(r"tag 'batch-write-.*' would be snapshot \d+$", shown)
    said = lake_says(catalog, "tag", "create-due", "shop.orders")
    assert re.match(r"tag 'batch-write-.*' is snapshot \d+$", said)


def test_a_branch_is_made_forwarded_renamed_and_deleted(catalog):
    lake_says(catalog, "branch", "create", "shop.orders", "dev", "--snapshot", "3")
    catalog.table("shop.orders$branch_dev").write(pa.table({"id": [4]}))
    shown = lake_says(catalog, "branch", "list", "shop.orders")
    assert shown.splitlines()[-1].split()[:5] == ["dev", "2", "3", "4", "0"]
    assert "main would receive 1 snapshot of branch 'dev'" in lake_says(
        catalog, "branch", "fast-forward", "shop.orders", "dev", "--dry-run"
    )
    lake_says(catalog, "branch", "fast-forward", "shop.orders", "dev")
    lake_says(catalog, "branch", "rename", "shop.orders", "dev", "done")
    shown = lake_says(catalog, "branch", "delete", "shop.orders", "done")
    assert shown == "branch 'done' deleted, and no other file\n"
    assert lake_says(catalog, "branch", "list", "shop.orders") == "the table has no branch\n"
    assert len(catalog.table("shop.orders").snapshots()) == 4


def test_a_rollback_says_what_would_go_before_it_goes(catalog):
    shown = lake_says(
        catalog, "rollback", "shop.orders", "--tag", "v1", "--cut-history", "--dry-run"
    )
    assert "snapshot 1 would be the newest; would be deleted: 2 newer snapshots" in shown
    assert f"`lake -w {catalog.location} orphans shop.orders --remove` removes the files" in shown
    back = ("rollback", "shop.orders", "--snapshot", "2")
    said = "snapshot 4 would have the rows of snapshot 2: 0 files would be restored, 1 removed"
    assert said in lake_says(catalog, *back, "--dry-run")
    shown = lake_says(catalog, *back)
    assert "snapshot 4 has the rows of snapshot 2: 0 files restored, 1 removed" in shown
    cut = ("rollback", "shop.orders", "--tag", "v1", "--cut-history", "--json")
    assert "deleting 3 snapshots of shop.orders cannot be undone: add --yes" in refuses(
        catalog, *cut
    )
    [report] = json.loads(lake_says(catalog, *cut, "--yes"))
    assert report["removed_snapshots"] == [4, 3, 2]
    assert catalog.table("shop.orders").scan().count() == 1
    assert "a rollback needs exactly one of" in refuses(catalog, "rollback", "shop.orders")
