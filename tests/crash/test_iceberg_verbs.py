"""Every verb that changes an Iceberg table dies at every storage call: it is done or not, and a
repeated call ends where an undisturbed one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import Storage
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, sampled_states
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import made_table, referenced_files

COMMIT = lake.CommitId("nightly", 7)
Verb = Callable[[IcebergTable], Any]


def rows(ids: list[int], k: list[str]) -> pa.Table:
    return pa.table({"id": ids, "k": k})


def once(create: Callable[[], Any]) -> Any:
    """A verb without a commit identity: what a repeated call finds done is fine."""
    try:
        return create()
    except lake.AlreadyExistsError:
        return None


def stage_and_publish(table: IcebergTable) -> None:
    """Do the work of a task that stages rows and of one that publishes them, or a retry."""
    staged = table.staged.find(COMMIT)
    if staged is None:
        if table.find_commit(COMMIT):
            return
        with table.new_writer() as writer:
            writer.write(rows([90], ["c"]))
            messages = writer.prepare()
        staged = table.staged.add(messages, commit=COMMIT)
    table.staged.publish([table.staged.address(staged.name)], commit=COMMIT)
    assert table.staged.list() == []


VERBS: dict[str, Verb] = {
    "append": lambda table: table.write(rows([90], ["c"]), commit=COMMIT),
    "stage_and_publish": stage_and_publish,
    "overwrite": lambda table: table.write(rows([90], ["a"]), overwrite={"k": "a"}, commit=COMMIT),
    "truncate": lambda table: table.truncate(commit=COMMIT),
    "drop_partitions": lambda table: table.drop_partitions([{"k": "a"}], commit=COMMIT),
    "delete": lambda table: table.delete("id = 4", commit=COMMIT),
    "update": lambda table: table.update(
        "id >= 4", {"id": lambda old: pc.add(old["id"], 100)}, commit=COMMIT
    ),
    "upsert": lambda table: table.upsert(rows([4, 90], ["a", "a"]), by=["id"], commit=COMMIT),
    "compact": lambda table: table.compact(commit=COMMIT, rewrite_all=True),
    "sort": lambda table: table.compact(commit=COMMIT, strategy="sort", order_by=["id"]),
    "zorder": lambda table: table.compact(commit=COMMIT, strategy="zorder", order_by=["id", "k"]),
    "compact_by_group": lambda table: table.compact(
        commit=COMMIT, rewrite_all=True, partial_progress=True
    ),
    "compact_manifests": lambda table: table.compact_manifests(),
    "compact_deletes": lambda table: table.compact_deletes(convert_equality=True, commit=COMMIT),
    "analyze": lambda table: table.analyze(commit=COMMIT),
    "analyze_partitions": lambda table: table.analyze_partitions(commit=COMMIT),
    "rollback": lambda table: table.rollback(tag="kept"),
    "create_tag": lambda table: once(lambda: table.tags.create("new")),
    "replace_tag": lambda table: table.tags.replace("kept"),
    "create_branch": lambda table: once(lambda: table.branches.create("new")),
    "fast_forward": lambda table: table.branches.fast_forward("ahead"),
}


def opened(storage: Storage, branch: str = "main") -> IcebergTable:
    handle = handle_on(storage, simulated(len(storage.files())))
    return IcebergTable(replace(handle, branch=branch))


def start(version: int) -> CrashableStorage:
    """Two partitions, four files, deletes of both kinds, a tag, and a branch that is ahead."""
    storage = CrashableStorage()
    made_table(storage, version, partition={"k": "identity"})
    opened(storage).write(rows([1, 2, 3, 4], ["a", "a", "b", "b"]))
    opened(storage).tags.create("kept")
    opened(storage).write(rows([5, 6], ["a", "b"]))
    opened(storage).delete("id = 2")
    delete_by_key(opened(storage)._handle, 3, partition={"k_part": "b"})
    opened(storage).branches.create("ahead")
    opened(storage, "ahead").write(rows([50], ["a"]))
    return storage


def view(table: IcebergTable) -> dict[str, list[int]]:
    """The rows of every branch and tag."""
    found = {}
    for name, reference in table.references.items():
        scan = table.scan(snapshot=reference.snapshot_id)
        found[name] = sorted(scan.to_arrow()["id"].to_pylist())
    return found


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Each run makes its calls in one order."""
    monkeypatch.setattr("lakeformat.tables.parallel._PER_PROCESSOR", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", VERBS)
def test_a_fault_at_any_call_leaves_a_verb_done_or_not_done(name, version):
    def act(storage: CrashableStorage, acknowledged: list[str]) -> None:
        VERBS[name](opened(storage))
        acknowledged.append(name)

    before = view(opened(start(version)))
    undisturbed = start(version)
    act(undisturbed, [])
    after = view(opened(undisturbed))
    for trial in sampled_states(act, start=start(version), seed=SEED, most=6):
        storage = trial.reopened()
        try:
            found = view(opened(storage))
            assert found == after or (found == before and not trial.acknowledged)
            act(storage, [])
            assert view(opened(storage)) == after, "a repeated call ends elsewhere"
            assert referenced_files(opened(storage)._handle) <= set(storage.files())
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"after {trial}\n{trial.storage.trace()}")
            raise
