"""A branch or rollback that begins at a tag whose snapshot has expired has no changes.

The snapshot still names its changelog list, byte for byte as other engines write it.
"""

from __future__ import annotations

import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids
from tests.expired import missing, unneeded
from tests.keyed_rows import KeyedRows

EXPIRE = {"retain_max": 1, "retain_min": 1}


def begun_at_a_tag() -> KeyedRows:
    """Main has snapshot 5 alone, tag ``two`` is there, and branch ``dev`` has 2 and 3."""
    rows = KeyedRows({"changelog-producer": "input"})
    for number in range(1, 6):
        rows.commit(("+I", 1, f"v{number}"))
        if number == 2:
            rows.table.tags.create("two")
    rows.table.expire_snapshots(**EXPIRE)
    rows.table.branches.create("dev", tag="two")
    main, rows.table = rows.table, rows.catalog.table("shop.t$branch_dev")
    rows.commit(("+I", 1, "of dev"))
    rows.table = main
    return rows


def dev_of(rows: KeyedRows) -> lake.Table:
    return rows.catalog.table("shop.t$branch_dev")


def value(table: lake.Table) -> str:
    [row] = table.scan().to_arrow().to_pylist()
    return row["v"]


def check(rows: KeyedRows, of_main: str = "v6") -> None:
    assert missing(rows.table) == set()
    assert (value(rows.table), value(dev_of(rows))) == (of_main, "of dev")


def test_the_first_snapshot_of_the_branch_names_a_list_that_is_gone():
    handle = dev_of(begun_at_a_tag())._handle
    named = read_snapshot(handle.storage, handle.layout, 2).changelog_manifest_list
    assert named is not None
    assert not handle.storage.exists(handle.layout.manifest(named))


def test_main_expires_beside_such_a_branch():
    rows = begun_at_a_tag()
    rows.commit(("+I", 1, "v6"))
    assert rows.table.expire_snapshots(**EXPIRE).snapshots == (5,)
    check(rows)


@pytest.mark.parametrize("changes_outlive", [False, True])
def test_the_branch_expires_itself(changes_outlive: bool):
    rows = begun_at_a_tag()
    rows.commit(("+I", 1, "v6"))
    if changes_outlive:
        longer = lake.set_option("changelog.num-retained.min", "100")
        rows.catalog.alter_table("shop.t$branch_dev", longer)
    dev = dev_of(rows)
    assert dev.expire_snapshots(**EXPIRE).snapshots == (2,)
    assert changelog_ids(dev._handle.storage, dev._handle.layout) == []
    check(rows)


def test_tags_and_branches_are_deleted_beside_it():
    rows = begun_at_a_tag()
    rows.commit(("+I", 1, "v6"))
    rows.table.tags.create("five", snapshot=5)
    rows.table.branches.create("other", tag="five")
    rows.table.expire_snapshots(**EXPIRE)
    rows.table.branches.delete("other")
    rows.table.tags.delete("five")
    check(rows)
    dev_of(rows).tags.delete("two", force=True)
    rows.table.tags.delete("two", force=True)
    check(rows)
    rows.table.branches.delete("dev")
    assert unneeded(rows.table) == missing(rows.table) == set()


def test_orphans_health_and_clones_take_it_for_no_damage():
    rows = begun_at_a_tag()
    assert rows.table.remove_orphans("1 d").orphan_files == 0
    assert rows.table.health(unknown=True).storage.unknown.files == 0
    lake.clone_table(rows.table, rows.catalog, "shop.copy", full=True)
    assert value(rows.catalog.table("shop.copy$branch_dev")) == "of dev"
    lake.clone_table(rows.table, rows.catalog, "shop.two", tag="two")
    assert value(rows.catalog.table("shop.two")) == "v2"


def test_after_a_rollback_to_the_tag_main_goes_on():
    rows = begun_at_a_tag()
    rows.table.rollback(tag="two", as_latest=False)
    rows.commit(("+I", 1, "v6"))
    rows.table.tags.create("now")
    rows.table.tags.delete("now")
    assert rows.table.remove_orphans("1 d").reason
    assert rows.table.expire_snapshots(**EXPIRE).snapshots == (2,)
    check(rows)


def test_its_changes_have_expired_and_are_not_damaged_while_later_ones_can_be_read():
    rows = begun_at_a_tag()
    with pytest.raises(lake.NotFoundError, match=r"the changes of snapshot 2 of .* have expired"):
        [each.to_arrow() for each in dev_of(rows).stream("from-snapshot", snapshot=2)]
    [after] = dev_of(rows).stream("from-snapshot", snapshot=3)
    assert after.to_arrow().num_rows == 1


def test_a_list_that_is_missing_elsewhere_is_damage():
    rows = begun_at_a_tag()
    handle = dev_of(rows)._handle
    assert snapshot_ids(handle.storage, handle.layout) == [2, 3]
    named = read_snapshot(handle.storage, handle.layout, 3).changelog_manifest_list
    handle.storage.delete(handle.layout.manifest(named))
    with pytest.raises(lake.CorruptTableError):
        [each.to_arrow() for each in dev_of(rows).stream("from-snapshot", snapshot=3)]
    with pytest.raises(lake.CorruptTableError):
        rows.table.remove_orphans("1 d")
