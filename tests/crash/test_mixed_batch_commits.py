"""Batches of Mixed tables die at every storage call: a commit is published whole or not at all."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.mixed.batch.lease import Lease
from lakeformat.testing import CrashableStorage
from tests.crash.test_mixed_writes import COLUMNS, merged, new_pair, table_in
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))


LATER_MILLIS = 4_000_000_000_000
"""A time after the end of every lease; one of which a crash left no content ends by the time of its
file."""


@pytest.fixture(autouse=True)
def _no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is renewed only by commits, so that each run makes the same storage calls."""
    monkeypatch.setattr(Lease, "keep_renewing", lambda self: None)


def rows(changes: dict[int, str | None]) -> pa.Table:
    return pa.table([[*changes], pa.array(changes.values(), pa.string())], schema=COLUMNS)


def stream_and_batches(
    storage: CrashableStorage, acknowledged: list[int], *, is_later: bool = False
) -> None:
    """A stream writes while a batch changes rows, and while another one overwrites all rows."""
    table = later(table_in(storage)) if is_later else table_in(storage)
    table.write(rows({1: "a", 2: "a"}), commit=lake.CommitId("stream", 0))
    acknowledged.append(1)
    with table.begin() as batch:
        table.write(rows({1: "b"}), commit=lake.CommitId("stream", 1))
        acknowledged.append(2)
        batch.write(rows({1: "x", 3: "x"}), commit=lake.CommitId("batch", 0))
        acknowledged.append(3)
    with table.begin() as batch:
        table.write(rows({4: "c"}), commit=lake.CommitId("stream", 2))
        acknowledged.append(4)
        new, commit = rows({3: "y", 4: "y"}), lake.CommitId("over", 0)
        if SEED % 2:
            batch.overwrite(new, "table", commit=commit)
        else:  # as Spark's tasks write, and its driver commits
            with table.new_writer(overwrite="table", transaction=batch.transaction) as writer:
                writer.write(new)
                messages = writer.prepare()
            batch.commit(messages, overwrite="table", commit=commit)
        acknowledged.append(5)


STATES: list[dict[int, str]] = [
    {},
    {1: "a", 2: "a"},
    {1: "b", 2: "a"},
    {1: "b", 2: "a", 3: "x"},
    {1: "b", 2: "a", 3: "x", 4: "c"},
    {3: "y", 4: "c"},
]
"""The rows after each commit, if all are made in one run."""


def later(table: lake.MixedTable) -> lake.MixedTable:
    """The table in a process that opens it when the leases of the dead one are stale."""
    pair = table._pair
    world = replace(pair.base.environment, now_millis=lambda: LATER_MILLIS)
    return lake.MixedTable(replace(pair, base=replace(pair.base, environment=world)))


@SEEDS
def test_a_fault_at_any_storage_call_leaves_the_state_before_or_after_a_commit(seed):
    for trial in sampled_states(stream_and_batches, start=new_pair(), seed=seed, most=9):
        recovered = trial.reopened()
        reached = STATES.index(merged(table_in(recovered)))
        newest = max(trial.acknowledged, default=0)
        assert reached >= newest, f"an acknowledged commit is lost after {trial}"
        # A compaction ends the batch that died, and merges everything.
        table = later(table_in(recovered))
        assert "wait" not in table.compact(strategy="full", executor="serial").sentence, str(trial)
        assert merged(table) == STATES[reached], str(trial)
        base = table.base.scan().to_arrow().to_pydict()
        assert dict(zip(base["id"], base["v"], strict=True)) == STATES[reached], str(trial)


@SEEDS
def test_repeating_an_interrupted_run_publishes_every_commit_once(seed):
    """A batch that is repeated begins later, so it may come after a commit of the stream."""
    for trial in sampled_states(stream_and_batches, start=new_pair(), seed=seed, most=9):
        recovered = trial.reopened()
        stream_and_batches(recovered, [], is_later=True)
        found = merged(table_in(recovered))
        assert found in ({3: "y", 4: "c"}, {3: "y", 4: "y"}), str(trial)
        users = [each.commit_user for each in table_in(recovered).snapshots() if each.commit_user]
        assert sorted(users) == ["batch", "over", "stream", "stream", "stream"], str(trial)
