"""Appends that merge manifests die at every storage call; nothing is lost, doubled or left over."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.errors import UnavailableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.table import load_table
from lakeformat.testing import CrashableStorage, Fault, FaultKind
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_states

ROOT = "wh/shop.db/orders"
COMMITS = 4


def new_table_storage() -> CrashableStorage:
    storage = CrashableStorage()
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    options = {"manifest.merge-min-count": "2"}
    catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    return storage


def table_in(storage) -> lake.Table:
    return load_table(storage, TableLayout(ROOT), simulated(len(storage.files())))


def append(storage, acknowledged):
    table = table_in(storage)
    for number in range(COMMITS):
        table.write(pa.table({"id": [number]}), commit=lake.CommitId("run", number))
        acknowledged.append(number)


def manifests_of(table) -> list[int]:
    """The number of manifests in the base list of each snapshot."""
    handle = table._handle
    return [
        len(read_manifest_list(handle.storage, handle.layout, snapshot.base_manifest_list))
        for snapshot in table.snapshots()
    ]


def test_commits_keep_the_base_list_short():
    storage = new_table_storage()
    append(storage, [])
    table = table_in(storage)
    assert manifests_of(table) == [0, 1, 1, 1]
    assert table.scan().to_arrow()["id"].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=3)))
def test_a_fault_at_any_call_of_a_merging_append_loses_and_doubles_nothing(seed):
    for trial in sampled_states(append, start=new_table_storage(), seed=seed):
        rows = table_in(trial.reopened()).scan().to_arrow()["id"].to_pylist()
        assert len(rows) == len(set(rows)), str(trial)
        assert set(trial.acknowledged) <= set(rows), str(trial)


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=3)))
def test_repeating_an_interrupted_run_publishes_every_commit_once(seed):
    for trial in sampled_states(append, start=new_table_storage(), seed=seed):
        recovered = trial.reopened()
        append(recovered, [])
        rows = table_in(recovered).scan().to_arrow()["id"].to_pylist()
        assert rows == list(range(COMMITS)), str(trial)


def test_a_merge_whose_commit_fails_leaves_nothing_behind():
    storage = new_table_storage()
    append(storage, [])
    before = set(storage.files())
    undisturbed = storage.reopened()
    table_in(undisturbed).write(pa.table({"id": [9]}))
    base_list = next(
        call.number
        for call in undisturbed.log
        if "/manifest-list-" in call.path and call.path not in before
    )
    failing = storage.reopened(Fault(base_list, FaultKind.FAIL_BEFORE))
    with pytest.raises(UnavailableError):
        table_in(failing).write(pa.table({"id": [9]}))
    assert {path for path in failing.files() if "/manifest/" in path} <= before


def test_a_rival_that_commits_first_leaves_the_merge_usable():
    """The rival's manifest comes after those that were merged, so they are still neighbours."""
    storage = new_table_storage()
    append(storage, [])
    table = table_in(storage)
    rival = load_table(storage, TableLayout(ROOT), simulated(999))
    publish = storage.create

    def overtaken(path, content):
        if "/snapshot-" in path and not taken:
            taken.append(path)
            rival.write(pa.table({"id": [50]}))
        return publish(path, content)

    taken: list[str] = []
    storage.create = overtaken
    table.write(pa.table({"id": [60]}))
    storage.create = publish

    assert table_in(storage).scan().to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 50, 60]
