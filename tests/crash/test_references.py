"""Tags, branches and rollbacks die at every storage call: kept states read as before.

A retry of the interrupted call finishes it, and leaves no file behind that it should delete.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.branch_directory import unfinished_branches
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.tag import read_tag
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.table import load_table
from lakeformat.testing import CrashableStorage, Trial
from tests.expired import missing, unneeded
from tests.sampling import sampled_faults

LAYOUT = TableLayout("wh/shop.db/orders")
OPTIONS = {"file-operation.thread-num": "1", "bucket": "1"}
_names = itertools.count(1)
State = dict[str, object]


def simulated() -> Environment:
    """A world in which every run makes the same calls under names of its own."""
    names, first = itertools.count(), next(_names)
    return Environment(
        now_millis=lambda: 1_700_000_000_000,
        new_id=lambda: f"{first:08d}-{next(names):04d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )


def opened(storage, branch: str = "main") -> lake.Table:
    return load_table(storage, LAYOUT.on_branch(branch), simulated())


def write(table: lake.Table, note: str) -> None:
    table.write(pa.table({"id": [1, 2], "note": [note] * 2}))


def filled(options: Mapping[str, str] | None = None) -> CrashableStorage:
    """Snapshots 4 to 6, tags of 2 and 3 which have expired, and a branch from each of 3 and 6."""
    storage = CrashableStorage()
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("id", "BIGINT NOT NULL"), ("note", "STRING")]
    table = catalog.create_table(
        "shop.orders", columns, primary_key=["id"], options={**OPTIONS, **(options or {})}
    )
    for number in (1, 2, 3):
        write(table, f"{number}")
        table.compact(executor="serial")
    table.tags.create("two", snapshot=2)
    table.tags.create("four", snapshot=4)
    table.expire_snapshots(retain_max=2, retain_min=2)
    table.branches.create("old", tag="four")
    write(opened(storage, "old"), "on old")
    table.branches.create("dev", snapshot=6)
    for number in (1, 2):
        write(opened(storage, "dev"), f"on dev {number}")
    assert (unneeded(table), missing(table)) == (set(), set())
    return storage


def rows(table: lake.Table, **when) -> list[str]:
    return sorted(f"{row['id']}:{row['note']}" for row in table.scan(**when).to_arrow().to_pylist())


def state(storage) -> State:
    """The readable states: every snapshot and tag of main, and the newest rows of each branch.

    Rows are named by their files, which never change; another check finds missing files.
    """
    table = opened(storage)
    found: State = {f"{each.id}": files(table, each) for each in table.snapshots()}
    for each in table.tags.list():
        found[each.name] = files(table, read_tag(storage, LAYOUT, each.name).snapshot)
    for each in table.branches.list():
        branch = opened(storage, each.name)
        found[each.name] = files(branch, branch.latest_snapshot())
    return found


def files(table: lake.Table, snapshot: Snapshot | None) -> list[str]:
    if snapshot is None:
        return []
    return sorted(entry.file.file_name for entry in plan_files(table._handle, snapshot))


@dataclass(frozen=True)
class Case:
    """Something done to a table."""

    act: Callable[[lake.Table], object]
    leaves_orphans: bool = False
    ends: type[lake.LakeError] | tuple = ()
    """The answers of a retry without work."""


CASES = {
    "create a tag": Case(lambda t: t.tags.create("new", snapshot=5, exist_ok=True)),
    "tag what a tag keeps": Case(lambda t: t.tags.create("new", snapshot=2, exist_ok=True)),
    "rename a tag": Case(lambda t: t.tags.rename("two", "zwei"), ends=lake.NotFoundError),
    "delete a tag": Case(lambda t: t.tags.delete("two"), ends=lake.NotFoundError),
    "delete two tags": Case(lambda t: t.tags.delete("two", "four", force=True, missing_ok=True)),
    "create an empty branch": Case(lambda t: t.branches.create("new", exist_ok=True)),
    "branch from a tag": Case(lambda t: t.branches.create("new", tag="two", exist_ok=True)),
    "branch from a snapshot": Case(lambda t: t.branches.create("new", snapshot=5, exist_ok=True)),
    "rename a branch": Case(lambda t: t.branches.rename("old", "new"), ends=lake.NotFoundError),
    "delete a branch": Case(lambda t: t.branches.delete("old"), ends=lake.NotFoundError),
    "delete a branch ahead of main": Case(
        lambda t: t.branches.delete("dev"), ends=lake.NotFoundError
    ),
    "fast-forward": Case(lambda t: t.branches.fast_forward("dev")),
    "roll back": Case(
        lambda t: t.rollback(snapshot=5, force=True, as_latest=False), leaves_orphans=True
    ),
    "roll back to a tag": Case(
        lambda t: t.rollback(tag="two", force=True, as_latest=False), leaves_orphans=True
    ),
}


def run(case: Case, storage, acknowledged=None) -> None:
    case.act(opened(storage))


def without(found: State, *, removable: set[str]) -> State:
    return {name: content for name, content in found.items() if name not in removable}


def disks(scenario, start) -> Iterator[tuple[Trial, CrashableStorage]]:
    """Every disk a fault leaves behind, each once: many calls leave it as the one before."""
    seen = set()
    for trial in sampled_faults(scenario, start=start):
        storage = trial.run().reopened()
        left = frozenset(storage.files().items())
        if left not in seen:
            seen.add(left)
            yield trial, storage


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_after_a_fault_at_any_storage_call_what_stays_reads_as_before_and_a_repeat_ends_it(name):
    case, start = CASES[name], filled()
    before = state(start)
    undisturbed = start.reopened()
    run(case, undisturbed)
    after = state(undisturbed)
    changed = {each for each in {*before, *after} if before.get(each) != after.get(each)}
    for trial, storage in disks(lambda storage, _: run(case, storage), start):
        found = state(storage)
        # Whatever the work does not change is there; what it changes is as before or as after.
        assert without(found, removable=changed) == without(before, removable=changed), str(trial)
        for each in changed & {*found}:
            assert found[each] in (before.get(each), after.get(each)), f"{each} in {trial}"
        assert missing(opened(storage)) == set(), str(trial)
        with suppress(*([case.ends] if case.ends else [])):
            run(case, storage)
        assert state(storage) == after, str(trial)
        assert unfinished_branches(storage, LAYOUT) == [], str(trial)
        if not case.leaves_orphans:
            assert unneeded(opened(storage)) == set(), str(trial)


def test_a_rollback_as_latest_happens_once_or_not_at_all():
    start = filled()
    before = state(start)

    def act(storage, _):
        opened(storage).rollback(tag="two", as_latest=True)

    for trial, storage in disks(act, start):
        found = {**before, **state(storage)}
        newest = opened(storage).latest_snapshot().id
        assert found[str(newest)] == before["two" if newest == 7 else "6"], str(trial)
        assert newest in (6, 7)
        table = opened(storage)
        if newest == 6:
            table.rollback(tag="two", as_latest=True)
        table.expire_snapshots(retain_max=1, retain_min=1)
        table.tags.delete("two", "four", force=True)
        assert missing(table) == set(), str(trial)
        assert rows(table) == ["1:1", "2:1"], str(trial)
