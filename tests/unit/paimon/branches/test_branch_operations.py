"""``table.branches``: made, forwarded, renamed and deleted, and what is refused."""

from __future__ import annotations

import json
from contextlib import suppress

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.branches.marker import Creation, mark
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot, snapshot_ids, write_hints
from lakeformat.paimon.table import load_table
from lakeformat.storage.memory import MemoryStorage
from tests.expired import missing, unneeded
from tests.keyed_rows import KeyedRows


def shop(commits: int = 3) -> KeyedRows:
    rows = KeyedRows()
    for number in range(1, commits + 1):
        rows.commit(("+I", number, f"v{number}"))
    return rows


def branch_of(rows: KeyedRows, name: str) -> lake.Table:
    return rows.catalog.table(f"shop.t$branch_{name}")


def commit_on(rows: KeyedRows, name: str, *kinds) -> None:
    main, rows.table = rows.table, branch_of(rows, name)
    rows.commit(*kinds)
    rows.table = main


def values(table: lake.Table) -> list[str]:
    return sorted(row["v"] for row in table.scan().to_arrow().to_pylist())


def ids(table: lake.Table) -> list[int]:
    return snapshot_ids(table._handle.storage, table._handle.layout)


def test_a_branch_begins_empty_at_a_tag_or_at_a_snapshot():
    rows = shop()
    rows.table.tags.create("two", snapshot=2)
    branches = rows.table.branches
    assert branches.create("none").snapshot_id is None
    assert branches.create("a", tag="two").snapshot_id == 2
    assert branches.create("b", snapshot=1).snapshot_id == 1
    found = {each.name: each for each in branches.list()}
    assert [each.snapshots for each in found.values()] == [1, 1, 0]
    assert (found["a"].first_snapshot, found["a"].tags) == (2, 1)
    assert values(branch_of(rows, "a")) == ["v1", "v2"]
    assert values(branch_of(rows, "none")) == []


def test_a_branch_from_a_tag_has_the_same_bytes_as_another_engine_would_write():
    rows = shop()
    rows.table.tags.create("two", snapshot=2)
    rows.table.branches.create("dev", tag="two")
    handle = rows.table._handle
    main, dev = handle.layout, handle.layout.on_branch("dev")
    for old, new in (
        (main.tag("two"), dev.tag("two")),
        (main.snapshot(2), dev.snapshot(2)),
        (main.schema(0), dev.schema(0)),
    ):
        assert json.loads(handle.storage.read(old)) == json.loads(handle.storage.read(new))
    assert handle.storage.list(dev.consumer_directory) == []


def test_a_branch_outlives_the_expiry_of_main_and_main_that_of_the_branch():
    rows = shop()
    rows.table.branches.create("dev", snapshot=2)
    rows.table.compact(executor="serial")
    rows.table.expire_snapshots(retain_max=1, retain_min=1)
    assert (missing(rows.table), values(branch_of(rows, "dev"))) == (set(), ["v1", "v2"])
    commit_on(rows, "dev", ("+I", 1, "dev"))
    branch_of(rows, "dev").expire_snapshots(retain_max=1, retain_min=1)
    assert missing(rows.table) == set()
    assert values(branch_of(rows, "dev")) == ["dev", "v2"]


def test_a_name_that_is_taken_or_impossible_is_refused():
    branches = shop().table.branches
    branches.create("dev")
    with pytest.raises(lake.AlreadyExistsError, match="already has a branch 'dev'"):
        branches.create("dev")
    assert branches.create("dev", exist_ok=True).action == "kept"
    for name in ("main", "12", " ", "a/b"):
        with pytest.raises(lake.InvalidRequestError):
            branches.create(name)
    with pytest.raises(lake.NotFoundError, match="has no tag 'v9'"):
        branches.create("new", tag="v9")


@pytest.mark.parametrize("name", ["$x", "a$files"])
def test_a_new_branch_that_the_name_of_a_table_cannot_name_is_refused(name, monkeypatch):
    branches = shop().table.branches
    branches.create("dev")
    refused = r"must not contain '\$', because 'database\.table\$branch_.* Nothing was changed"
    for change in (branches.create, lambda new: branches.rename("dev", new)):
        with pytest.raises(lake.InvalidRequestError, match=refused):
            change(name)
    assert [each.name for each in branches.list()] == ["dev"]
    with monkeypatch.context() as patched:  # an earlier version created it
        patched.setattr("lakeformat.paimon.branches.create.check_new_branch_name", lambda _: None)
        branches.create(name)
    assert branches.create(name, exist_ok=True).action == "kept"
    branches.rename(name, "new")
    assert [each.name for each in branches.list()] == ["dev", "new"]


def test_branches_are_looked_after_from_main():
    rows = shop()
    rows.table.branches.create("dev")
    with pytest.raises(lake.InvalidRequestError, match="open the table without a branch"):
        branch_of(rows, "dev").branches.create("more")


def test_main_takes_over_what_a_branch_has_added():
    rows = shop()
    rows.table.branches.create("dev", snapshot=3)
    rows.catalog.alter_table("shop.t$branch_dev", lake.add_column("more", "INT"))
    for number in (4, 5):
        data = pa.table({"k": pa.array([number], pa.int32()), "v": [f"v{number}"]})
        branch_of(rows, "dev").write(data)
    planned = rows.table.branches.fast_forward("dev", dry_run=True)
    assert (planned.snapshots, planned.schemas) == ((4, 5), (1,))
    assert ids(rows.table) == [1, 2, 3]
    report = rows.table.branches.fast_forward("dev")
    assert report.reason == "main received 2 snapshots, 1 schema of branch 'dev'"
    assert values(rows.catalog.table("shop.t")) == ["v1", "v2", "v3", "v4", "v5"]
    assert rows.catalog.table("shop.t").schema.column_names == ["k", "v", "more"]
    assert rows.table.branches.fast_forward("dev").reason.startswith("main has everything")
    rows.table.branches.delete("dev")
    assert (missing(rows.table), unneeded(rows.table)) == (set(), set())


def test_main_with_an_option_this_version_does_not_know_takes_over_nothing():
    rows = shop()
    rows.table.branches.create("dev", snapshot=3)
    commit_on(rows, "dev", ("+I", 4, "v4"))
    handle = rows.table._handle
    schema = json.loads(handle.storage.read(handle.layout.schema(0)))
    schema["options"]["metadata.iceberg.storage"] = "glue-catalog"
    handle.storage.overwrite(handle.layout.schema(0), json.dumps(schema).encode())
    table = load_table(handle.storage, handle.layout, handle.environment)
    with pytest.raises(lake.UnsupportedError, match=r"iceberg\.storage'.*Nothing was changed"):
        table.branches.fast_forward("dev")
    assert ids(table) == [1, 2, 3]


def test_a_branch_main_has_gone_on_from_cannot_be_forwarded():
    rows = shop()
    rows.table.branches.create("dev", snapshot=2)
    commit_on(rows, "dev", ("+I", 9, "dev"))
    with pytest.raises(
        lake.InvalidRequestError,
        match="cannot be fast-forwarded: it shares the history of main up to snapshot 2, but "
        "main has later commits up to "
        "snapshot 3",
    ):
        rows.table.branches.fast_forward("dev")
    rows.table.rollback(snapshot=2, as_latest=False)
    rows.table.branches.fast_forward("dev")
    assert values(rows.table) == ["dev", "v1", "v2"]


def test_a_branch_of_another_beginning_cannot_be_forwarded():
    rows = shop()
    rows.table.branches.create("dev")
    with pytest.raises(lake.InvalidRequestError, match="the branch has no snapshot"):
        rows.table.branches.fast_forward("dev")
    commit_on(rows, "dev", ("+I", 9, "dev"))
    with pytest.raises(lake.InvalidRequestError, match="the branch began empty, the shared"):
        rows.table.branches.fast_forward("dev")


def test_a_rollback_that_cuts_main_decides_which_branches_can_be_forwarded():
    rows = shop(2)
    rows.table.branches.create("dev", snapshot=2)
    commit_on(rows, "dev", ("+I", 9, "dev"))
    rows.table.branches.fast_forward("dev")
    rows.commit(("+I", 7, "main"))
    rows.table.branches.create("newer", snapshot=4)
    rows.table.rollback(snapshot=2, as_latest=False, force=True)
    with pytest.raises(lake.InvalidRequestError, match="or a rollback removed them from main"):
        rows.table.branches.fast_forward("newer")
    rows.table.branches.fast_forward("dev")
    assert values(rows.table) == ["dev", "v1", "v2"]


def test_an_empty_main_takes_over_a_branch_that_began_empty():
    rows = KeyedRows()
    rows.table.branches.create("dev")
    commit_on(rows, "dev", ("+I", 9, "dev"))
    rows.table.branches.fast_forward("dev")
    assert values(rows.table) == ["dev"]


def test_a_branch_that_has_lost_snapshots_main_needs_cannot_be_forwarded():
    rows = shop()
    rows.table.tags.create("three")
    rows.table.branches.create("dev", tag="three")
    for number in (4, 5):
        commit_on(rows, "dev", ("+I", number, "dev"))
    branch_of(rows, "dev").expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(lake.InvalidRequestError, match="no longer has snapshot 4"):
        rows.table.branches.fast_forward("dev")


def test_a_branch_whose_schema_main_has_changed_otherwise_cannot_be_forwarded():
    rows = shop()
    rows.table.branches.create("dev", snapshot=3)
    commit_on(rows, "dev", ("+I", 9, "dev"))
    rows.catalog.alter_table("shop.t$branch_dev", lake.add_column("a", "INT"))
    rows.catalog.alter_table("shop.t", lake.add_column("b", "INT"))
    with pytest.raises(
        lake.InvalidRequestError, match="schema 1 was changed differently on main and on"
    ):
        rows.table.branches.fast_forward("dev")


def test_a_branch_with_another_tag_of_the_same_name_cannot_be_forwarded():
    rows = shop()
    rows.table.branches.create("dev", snapshot=3)
    commit_on(rows, "dev", ("+I", 9, "dev"))
    branch_of(rows, "dev").tags.create("v")
    rows.table.tags.create("v")
    with pytest.raises(lake.InvalidRequestError, match="tag 'v' names another snapshot on main"):
        rows.table.branches.fast_forward("dev")
    rows.table.tags.delete("v", force=True)
    assert rows.table.branches.fast_forward("dev").tags == ("v",)


def test_a_tag_that_is_deleted_while_a_branch_is_made_of_it_leaves_no_branch(monkeypatch):
    rows = shop()
    rows.table.tags.create("kept", snapshot=2)
    create = MemoryStorage.create

    def with_rival(storage, path, content):
        if path.endswith("branch-dev/schema/schema-0") and rows.table.tags.list():
            rows.table.tags.delete("kept")
        return create(storage, path, content)

    monkeypatch.setattr(MemoryStorage, "create", with_rival)
    with pytest.raises(lake.CommitConflictError, match=r"tag 'kept' .* was deleted or replaced"):
        rows.table.branches.create("dev", tag="kept")
    assert rows.table.branches.list() == []
    assert rows.table.branches.create("dev", snapshot=3).action == "created"


def test_a_commit_to_main_while_it_is_forwarded_is_kept_and_ends_the_forwarding(monkeypatch):
    rows = shop()
    rows.table.branches.create("dev", snapshot=3)
    for number in (4, 5):
        commit_on(rows, "dev", ("+I", number, "dev"))
    create = MemoryStorage.create
    met = []

    def with_rival(storage, path, content):
        if path.endswith("t/snapshot/snapshot-5") and not met:
            met.append(path)
            rows.commit(("+I", 7, "rival"))
        return create(storage, path, content)

    monkeypatch.setattr(MemoryStorage, "create", with_rival)
    with pytest.raises(lake.CommitConflictError, match=r"another program wrote .* during the fast"):
        rows.table.branches.fast_forward("dev")
    assert values(rows.table) == ["dev", "rival", "v1", "v2", "v3"]
    with pytest.raises(lake.InvalidRequestError, match="the history of main up to snapshot 4"):
        rows.table.branches.fast_forward("dev")


def test_deleting_a_branch_removes_exactly_what_only_it_held():
    rows = shop()
    rows.table.branches.create("dev", snapshot=2)
    rows.table.branches.create("other", snapshot=2)
    commit_on(rows, "dev", ("+I", 9, "dev"))
    branch_of(rows, "dev").tags.create("mine")
    branch_of(rows, "dev").compact(executor="serial")
    before = {path: None for path in rows.table._handle.storage.files()}
    planned, gone = [], []
    rows.table.branches.delete("dev", dry_run=True, on_progress=planned.append)
    assert {path: None for path in rows.table._handle.storage.files()} == before
    report = rows.table.branches.delete("dev", on_progress=gone.append)
    assert [each.path for each in planned] == [each.path for each in gone] != []
    assert report.deleted == ("dev",)
    assert (missing(rows.table), unneeded(rows.table)) == (set(), set())
    assert [each.name for each in rows.table.branches.list()] == ["other"]
    with pytest.raises(lake.NotFoundError, match="no branch 'dev'; its branches are 'other'"):
        rows.table.branches.delete("dev")


def test_a_branch_rows_are_read_through_is_in_use():
    rows = shop()
    rows.table.branches.create("dev")
    handle = rows.table._handle
    path = handle.layout.schema(0)
    members = json.loads(handle.storage.read(path))
    members["options"]["scan.fallback-branch"] = "dev"
    handle.storage.overwrite(path, json.dumps(members).encode())
    for change in (
        rows.table.branches.delete,
        lambda name: rows.table.branches.rename(name, "new"),
    ):
        with pytest.raises(lake.InvalidRequestError, match=r"'scan\.fallback-branch'"):
            change("dev")


def test_a_branch_gets_another_name():
    rows = shop()
    rows.table.branches.create("dev", snapshot=2)
    rows.table.branches.create("other")
    with pytest.raises(lake.AlreadyExistsError):
        rows.table.branches.rename("dev", "other")
    with pytest.raises(lake.AlreadyExistsError, match=r"choose another name$"):
        rows.table.branches.rename("dev", "dev")
    rows.table.branches.rename("dev", "staging")
    assert [each.name for each in rows.table.branches.list()] == ["other", "staging"]
    assert values(branch_of(rows, "staging")) == ["v1", "v2"]


@pytest.mark.parametrize("action", ["rename", "delete"])
@pytest.mark.parametrize("is_local", [False, True])
def test_a_consumer_of_a_branch_that_went_away_leaves_nothing_in_its_place(
    tmp_path, is_local, action
):
    rows = KeyedRows(warehouse=f"{tmp_path}" if is_local else None)
    for number in (1, 2):
        rows.commit(("+I", number, f"v{number}"))
    rows.table.branches.create("dev", snapshot=2)
    dev = branch_of(rows, "dev")
    stream = dev.stream(consumer="job")
    stream.poll()
    if action == "rename":
        rows.table.branches.rename("dev", "new")
    else:
        rows.table.branches.delete("dev")
    for write in (stream.acknowledge, lambda: dev.consumers.set("job", next_snapshot=1)):
        with pytest.raises(lake.NotFoundError, match="no branch 'dev'"):
            write()
    left = ["new"] if action == "rename" else []
    assert [each.name for each in rows.table.branches.list()] == left


@pytest.mark.parametrize("is_local", [False, True])
def test_a_branch_that_is_renamed_before_a_commit_has_written_its_hint_leaves_its_old_place(
    tmp_path, is_local
):
    rows = KeyedRows(warehouse=f"{tmp_path}" if is_local else None)
    rows.commit(("+I", 1, "v1"))
    rows.table.branches.create("dev", snapshot=1)
    commit_on(rows, "dev", ("+I", 2, "v2"))
    storage, layout = rows.table._handle.storage, rows.table._handle.layout.on_branch("dev")
    rows.table.branches.rename("dev", "new")
    write_hints(storage, layout, 2)
    assert [branch.name for branch in rows.table.branches.list()] == ["new"]
    assert not storage.directory_exists(layout.metadata_root)
    rows.table.branches.rename("new", "dev")
    assert values(branch_of(rows, "dev")) == ["v1", "v2"]


def test_a_branch_that_is_being_made_is_not_there_yet():
    rows = shop()
    handle = rows.table._handle
    rows.table.branches.create("dev", snapshot=2)
    work = Creation(None, read_snapshot(handle.storage, handle.layout, 2), 0)
    assert mark(handle, "dev", work)
    assert rows.table.branches.list() == []
    with pytest.raises(lake.NotFoundError, match="being created, renamed or deleted"):
        branch_of(rows, "dev")
    with pytest.raises(lake.AlreadyExistsError, match="created from another snapshot"):
        rows.table.branches.create("dev", snapshot=1)
    rows.table.branches.create("dev", snapshot=2)
    assert values(branch_of(rows, "dev")) == ["v1", "v2"]


def test_an_expiry_of_the_branch_meanwhile_takes_nothing_that_main_gets():
    """It has looked at main before main was forwarded, and removes files after that."""
    rows = KeyedRows()
    rows.commit(("+I", 1, "v1"))
    main = rows.table
    main.branches.create("dev", snapshot=1)
    rows.table = rows.catalog.table("shop.t$branch_dev")
    for number in (2, 3, 4):
        rows.commit(("+I", 1, f"v{number}"))
        rows.table.compact(executor="serial")
    handle, met = rows.table._handle, []

    class Forwards(MemoryStorage):
        def delete(self, path: str) -> None:
            if "/branch-dev/snapshot/snapshot-" in path and not met:
                met.append(path)
                with suppress(lake.LakeError):
                    main.branches.fast_forward("dev")
            super().delete(path)

    storage = Forwards()
    storage.__dict__.update(handle.storage.__dict__)
    load_table(storage, handle.layout, handle.environment).expire_snapshots(
        retain_max=1, retain_min=1
    )
    assert met
    for snapshot in main.snapshots():
        assert len(main.scan(snapshot=snapshot.id).to_arrow()) == 1
    assert missing(main) == set()


def test_a_tag_of_the_branch_that_is_deleted_meanwhile_is_no_tag_of_main():
    rows = shop(1)
    main = rows.table
    main.branches.create("dev", snapshot=1)
    branch = branch_of(rows, "dev")
    branch.tags.create("one", snapshot=1)
    handle, met = main._handle, []

    class Deletes(MemoryStorage):
        def create(self, path: str, content: bytes) -> bool:
            if path.endswith("/t/tag/tag-one"):
                met.append(path)
                branch.tags.delete("one")
            return super().create(path, content)

    storage = Deletes()
    storage.__dict__.update(handle.storage.__dict__)
    table = load_table(storage, handle.layout, handle.environment)
    with pytest.raises(
        lake.CommitConflictError, match="was deleted or replaced meanwhile, so tag 'one'"
    ):
        table.branches.fast_forward("dev")
    assert met
    assert main.tags.list() == []
