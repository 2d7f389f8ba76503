"""Writes of Iceberg tables die at every storage call; each acknowledged row is found once."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.append import append
from lakeformat.iceberg.write.overwrite import overwrite
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_states
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import ids_of, made_table, referenced_files

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
VERSIONS = pytest.mark.parametrize("version", [2, 3])


def new_table(version: int) -> CrashableStorage:
    """An empty table that merges its manifests in the last of three commits."""
    storage = CrashableStorage()
    minimum = {"commit_manifest_min-count-to-merge": "3"}
    made_table(storage, version, partition={"k": "identity"}, **minimum)
    return storage


def table_in(storage: CrashableStorage) -> TableHandle:
    return handle_on(storage, simulated(len(storage.files())))


def append_three_times(storage: CrashableStorage, acknowledged: list[list[int]]) -> None:
    """Three commits, each acknowledged with the rows it brought."""
    handle = table_in(storage)
    for number in range(3):
        ids = [number * 10 + each for each in range(3)]
        rows = pa.table({"id": ids, "k": ["a", "b", "a"]})
        append(handle, rows, commit=lake.CommitId("run", number))
        acknowledged.append(ids)


@SEEDS
@VERSIONS
def test_a_fault_at_any_storage_call_loses_and_doubles_nothing(version, seed):
    for trial in sampled_states(append_three_times, start=new_table(version), seed=seed):
        storage = trial.reopened()
        handle = table_in(storage)
        ids = ids_of(handle)
        assert len(ids) == len(set(ids)), f"a row is there twice after {trial}"
        for acknowledged in trial.acknowledged:
            assert set(acknowledged) <= set(ids), f"an acknowledged row is lost after {trial}"
        for number in range(3):
            batch = {number * 10 + each for each in range(3)}
            assert batch & set(ids) in (set(), batch), f"half a commit is visible after {trial}"
        assert referenced_files(handle) <= set(storage.files()), f"a file is lost after {trial}"


@SEEDS
def test_repeating_an_interrupted_run_publishes_every_commit_once(seed):
    for trial in sampled_states(append_three_times, start=new_table(3), seed=seed):
        recovered = trial.reopened()
        append_three_times(recovered, [])
        handle = table_in(recovered)
        assert ids_of(handle) == [0, 1, 2, 10, 11, 12, 20, 21, 22], str(trial)
        summaries = [each.summary for each in handle.load().metadata.snapshots]
        assert [each["lake.commit-identifier"] for each in summaries] == ["0", "1", "2"]
        assert summaries[-1]["total-records"] == "9"
        assert summaries[-1]["total-data-files"] == "6"


def overwrite_twice(storage: CrashableStorage, acknowledged: list[list[int]]) -> None:
    """Rows that are replaced twice: those of one partition, then all."""
    handle = table_in(storage)
    append(handle, pa.table({"id": [1, 2], "k": ["a", "b"]}), commit=lake.CommitId("run", 0))
    steps = [({"k": "a"}, [3], [2, 3]), ("table", [4], [4])]
    for number, (replaced, ids, left) in enumerate(steps, 1):
        rows = pa.table({"id": ids, "k": ["a"]})
        overwrite(handle, rows, replaced, commit=lake.CommitId("run", number))
        acknowledged.append(left)


@SEEDS
def test_an_overwrite_is_done_whole_or_not_at_all_and_once(seed):
    states = [[], [1, 2], [2, 3], [4]]
    for trial in sampled_states(overwrite_twice, start=new_table(3), seed=seed):
        storage = trial.reopened()
        handle = table_in(storage)
        ids = ids_of(handle)
        assert ids in states, f"half a commit is visible after {trial}"
        if trial.acknowledged:
            assert states.index(ids) >= states.index(trial.acknowledged[-1]), str(trial)
        assert referenced_files(handle) <= set(storage.files()), f"a file is lost after {trial}"
        overwrite_twice(storage, [])
        assert ids_of(table_in(storage)) == [4], f"a retry differs after {trial}"


def prepare_and_redo(storage: CrashableStorage, acknowledged: list[list[int]]) -> None:
    """Files of two writers in one commit of a stream, and then the run that is done again."""
    table = IcebergTable(table_in(storage))
    with table.stream_batch(lake.CommitId("stream", 0)) as commit:
        if commit is not None:
            messages = []
            for ids in ([1], [2]):
                with table.new_writer() as writer:
                    writer.write(pa.table({"id": ids, "k": ["a"]}))
                    messages += writer.prepare()
            if (report := table.commit(messages, commit=commit)).unpublished_files:
                table.abort(messages)
            acknowledged.append([1, 2])
    first = table.find_commit(lake.CommitId("stream", 0))
    replaced = None if first is None else first.snapshot_id
    again = lake.CommitId("stream", 1, replaces=replaced)
    report = table.write(pa.table({"id": [3], "k": ["b"]}), commit=again)
    assert report.kind == "overwrite"
    acknowledged.append([3])


@SEEDS
def test_prepared_files_and_their_redo_are_published_whole_and_once(seed):
    states = [[], [1, 2], [3]]
    for trial in sampled_states(prepare_and_redo, start=new_table(3), seed=seed):
        storage = trial.reopened()
        ids = ids_of(table_in(storage))
        assert ids in states, f"half a commit is visible after {trial}"
        if trial.acknowledged:
            assert states.index(ids) >= states.index(trial.acknowledged[-1]), str(trial)
        assert referenced_files(table_in(storage)) <= set(storage.files()), str(trial)
        prepare_and_redo(storage, [])
        assert ids_of(table_in(storage)) == [3], f"a retry differs after {trial}"
