"""A branch that is renamed keeps its consumers, streams, runs and staged results; a deleted one
leaves none.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import AlreadyExistsError, UnavailableError
from lakeformat.iceberg.references import branch_records, table_branches
from lakeformat.iceberg.references.branch_records import delete_left_records, forget_branch
from lakeformat.iceberg.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.unit.iceberg.path_table import ROOT, handle_on
from tests.unit.iceberg.write.made_tables import ids_of, made_table

DAY = 24 * 3600 * 1000
RUN = lake.RunRecord(user="dag/run", identifier=1, mark=0)


@pytest.fixture
def storage() -> MemoryStorage:
    """A table whose branch ``dev`` has two commits, and a record of each kind."""
    storage = MemoryStorage("branches")
    made_table(storage)
    main = opened(storage)
    main.write(rows(1))
    main.branches.create("dev")
    add_records(storage)
    return storage


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def opened(storage, branch: str = "main", **world) -> IcebergTable:
    return IcebergTable(replace(handle_on(storage, Environment(**world)), branch=branch))


def add_records(storage) -> None:
    dev = opened(storage, "dev")
    dev.consumers.set("copy", after=dev.position())
    write_batch(dev, 7, 2)
    dev.record_run(RUN)
    writer = dev.new_writer()
    writer.write(rows(3))
    dev.staged.add(writer.prepare(), commit=lake.CommitId("job", 0))


def write_batch(table: IcebergTable, number: int, row: int) -> bool:
    with table.stream_batch(lake.CommitId("feed", number)) as commit:
        if commit is not None:
            table.write(rows(row), commit=commit)
        return commit is not None


def records(storage) -> list[str]:
    return [each for each in storage.files() if "/_lake/branch/" in each]


def as_of_earlier_releases(storage) -> None:
    """Move the records to the places of earlier releases, outside of the UUID's directory."""
    for each in records(storage):
        if "/4f2b/" in each and "/staged/" not in each:
            storage.overwrite(each.replace("/4f2b/", "/"), storage.read(each))
            storage.delete(each)


@pytest.mark.parametrize("is_old", [False, True])
def test_a_renamed_branch_keeps_its_records(storage, is_old):
    if is_old:
        as_of_earlier_releases(storage)
    opened(storage).branches.rename("dev", "new")
    assert {each.split("/")[4] for each in records(storage)} == {"branch-new"}
    new = opened(storage, "new")
    assert new.stream(consumer="copy").poll().to_arrow()["id"].to_pylist() == [2]
    assert not write_batch(new, 7, 9)
    assert new.find_run("dag/run") == RUN
    [staged] = new.staged.list()
    new.staged.publish([new.staged.address(staged.name)])
    assert ids_of(new._handle) == [1, 2, 3]


def test_a_rename_that_crashes_can_be_repeated(storage, monkeypatch):
    def crash(*_args: object, **_named: object) -> None:
        raise UnavailableError("crash")

    before = records(storage)
    with monkeypatch.context() as patched:
        publish = table_branches.publish
        patched.setattr(
            table_branches,
            "publish",
            lambda *args, dry_run: publish(*args, dry_run=True) if dry_run else crash(),
        )
        with pytest.raises(UnavailableError):
            opened(storage).branches.rename("dev", "new")
    assert {*before} < {*records(storage)}
    opened(storage).branches.create("new")  # it does not get the copies
    assert records(storage) == before
    opened(storage).branches.delete("new")
    opened(storage).branches.rename("dev", "new")
    assert len(records(storage)) == len(before)


def before_the_commit(monkeypatch, act) -> None:
    """Let ``act`` happen in another process, before the next change of a branch is committed."""
    publish = table_branches.publish

    def published(handle, plan, *, dry_run: bool):
        if not dry_run:
            monkeypatch.setattr(table_branches, "publish", publish)
            act()
        return publish(handle, plan, dry_run=dry_run)

    monkeypatch.setattr(table_branches, "publish", published)


def test_a_rename_keeps_its_records_although_another_process_tries_to_use_the_name(
    storage, monkeypatch
):
    before_the_commit(monkeypatch, lambda: delete_left_records(handle_on(storage), "new"))
    before = records(storage)
    opened(storage).branches.rename("dev", "new")
    assert records(storage) == [each.replace("branch-dev", "branch-new") for each in before]


def test_a_rename_keeps_the_progress_until_its_commit(storage, monkeypatch):
    def progress() -> None:
        dev = opened(storage, "dev")
        assert write_batch(dev, 8, 8)
        dev.consumers.set("copy", after=dev.position())

    before_the_commit(monkeypatch, progress)
    opened(storage).branches.rename("dev", "new")
    new = opened(storage, "new")
    assert new.stream(consumer="copy").poll() is None
    [stream] = [each for each in records(storage) if each.endswith("stream-feed")]
    assert json.loads(storage.read(stream)) == {"identifier": 8}


def test_a_rename_keeps_the_progress_of_the_new_branch(storage, monkeypatch):
    publish = table_branches.publish

    def published(handle, plan, *, dry_run: bool):
        done = publish(handle, plan, dry_run=dry_run)
        if not dry_run:
            new = opened(storage, "new")
            new.consumers.set("copy", after=new.position())
        return done

    monkeypatch.setattr(table_branches, "publish", published)
    opened(storage).branches.rename("dev", "new")
    assert opened(storage, "new").stream(consumer="copy").poll() is None


@pytest.mark.parametrize("change", ["delete", "rename"])
def test_a_branch_that_another_process_creates_again_keeps_its_records(
    storage, monkeypatch, change
):
    main = opened(storage)

    def created(handle, name: str) -> None:
        monkeypatch.undo()
        main.branches.create("dev")
        opened(storage, "dev").record_run(RUN)
        forget_branch(handle, name)

    for module in (table_branches, branch_records):
        monkeypatch.setattr(module, "forget_branch", created)
    if change == "rename":
        main.branches.rename("dev", "new")
    else:
        main.branches.delete("dev")
    assert opened(storage, "dev").find_run("dag/run") == RUN


def test_a_refused_rename_keeps_the_records_of_both_branches(storage):
    opened(storage).branches.create("other")
    before = records(storage)
    for old, new in (("dev", "other"), ("other", "dev")):
        with pytest.raises(AlreadyExistsError):
            opened(storage).branches.rename(old, new)
        opened(storage).branches.rename("dev", "free", dry_run=True)
    assert records(storage) == before


@pytest.mark.parametrize("is_old", [False, True])
def test_a_deleted_branch_leaves_no_records(storage, is_old):
    if is_old:
        as_of_earlier_releases(storage)
    opened(storage).branches.delete("dev", dry_run=True)
    assert records(storage)
    opened(storage).branches.delete("dev")
    assert records(storage) == []


def test_a_branch_that_an_expiry_deletes_leaves_no_records(storage):
    main = opened(storage)
    main.branches.create("short", retain="1 d")
    short = opened(storage, "short")
    short.consumers.set("copy", after=short.position())
    dev = records(storage)
    later = opened(storage, now_millis=lambda: SYSTEM.now_millis() + 30 * DAY)
    later.write(rows(5))
    assert later.expire_snapshots(retain_min=1, older_than="1 d").references == ("short",)
    assert {*records(storage)} < {*dev}
    assert {each.split("/")[4] for each in records(storage)} == {"branch-dev"}


def test_a_branch_that_an_expiry_deletes_keeps_no_snapshot_for_its_consumers(storage):
    opened(storage, "dev").consumers.clear()
    main = opened(storage)
    main.branches.create("short", retain="1 d")
    short = opened(storage, "short")
    read = short.position()
    short.write(rows(5))
    short.consumers.set("copy", after=read)
    own = {each.id for each in short.snapshots()} - {each.id for each in main.snapshots()}
    later = opened(storage, now_millis=lambda: SYSTEM.now_millis() + 30 * DAY)
    later.write(rows(6))
    report = later.expire_snapshots(retain_min=1, older_than="1 d")
    assert (report.references, report.held) == (("short",), 0)
    assert own <= {*report.snapshots}
    assert not later.expire_snapshots(retain_min=1, older_than="1 d").has_work


def test_a_new_branch_has_no_records_of_a_deleted_one(storage):
    left = {each: storage.read(each) for each in records(storage)}
    opened(storage).branches.delete("dev")
    for path, content in left.items():  # another program has deleted the branch
        storage.overwrite(path, content)
    main = opened(storage)
    main.branches.create("dev", dry_run=True)
    assert records(storage)
    main.branches.create("dev")
    dev = opened(storage, "dev")
    assert write_batch(dev, 7, 2)
    assert dev.consumers.list() == []
    assert dev.find_run("dag/run") is None
    assert dev.staged.list() == []
    main.branches.create("dev", exist_ok=True)
    assert records(storage) == [f"{ROOT}/_lake/branch/branch-dev/stream/4f2b/stream-feed"]
