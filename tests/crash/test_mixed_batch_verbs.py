"""Updates and deletes of batches, and the end of a batch that hangs, die at every storage call."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.mixed.batch.batch import MixedBatch
from lakeformat.mixed.batch.lease import Lease, leases_of
from lakeformat.mixed.batch.open_batches import leased_batches
from lakeformat.testing import CrashableStorage
from tests.crash.test_mixed_batch_commits import later
from tests.crash.test_mixed_writes import new_pair, table_in
from tests.sampling import sampled_states

SAMPLED = pytest.mark.sampled(1, among="verbs of batches")
COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string()), ("p", pa.int64())]
)
Rows = dict[int, tuple[str, int]]


@pytest.fixture(autouse=True)
def _no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is renewed only by commits, so that each run makes the same storage calls."""
    monkeypatch.setattr(Lease, "keep_renewing", lambda self: None)


def rows(**values: tuple[str, int]) -> pa.Table:
    columns = [[int(each[1:]) for each in values], *zip(*values.values(), strict=True)]
    return pa.table(columns, schema=COLUMNS)


def merged(table: lake.MixedTable) -> Rows:
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: (row["v"], row["p"]) for row in found}


STATES: list[Rows] = [
    {1: ("a", 1), 2: ("a", 1), 3: ("a", 2)},
    {1: ("b", 1), 2: ("a", 1), 3: ("a", 2)},
    {1: ("b", 1), 2: ("x", 1), 3: ("x", 2)},
    {1: ("b", 1), 2: ("c", 1), 3: ("x", 2)},
    {1: ("b", 1), 2: ("c", 1)},
    {1: ("b", 2), 2: ("c", 1)},
]
"""The rows at the start, and after each commit."""


def filled() -> CrashableStorage:
    """A table with two partitions, of which the base store has the rows."""
    storage = new_pair(COLUMNS, partitioned_by=["p"])
    table = table_in(storage)
    table.write(rows(_1=("a", 1), _2=("a", 1), _3=("a", 2)))
    table.compact(strategy="full", executor="serial")
    return storage


def stream_and_changes(
    storage: CrashableStorage, acknowledged: list[int], *, is_later: bool = False
) -> None:
    """A stream writes while a batch updates rows, while one deletes rows; one moves a row."""
    table = later(table_in(storage)) if is_later else table_in(storage)
    with table.begin() as batch:
        table.write(rows(_1=("b", 1)), commit=lake.CommitId("stream", 0))
        acknowledged.append(1)
        batch.update("v = 'a'", {"v": "x"}, commit=lake.CommitId("update", 0))
        acknowledged.append(2)
    with table.begin() as batch:
        table.write(rows(_2=("c", 1)), commit=lake.CommitId("stream", 1))
        acknowledged.append(3)
        batch.delete("v = 'x'", commit=lake.CommitId("delete", 0))
        acknowledged.append(4)
    with table.begin() as batch:
        batch.update("id = 1", {"p": 2}, commit=lake.CommitId("move", 0))
        acknowledged.append(5)


@SAMPLED
def test_a_fault_at_any_storage_call_leaves_a_change_of_rows_done_or_not_and_a_retry_ends_it():
    for trial in sampled_states(stream_and_changes, start=filled(), most=9):
        recovered = trial.reopened()
        reached = STATES.index(merged(table_in(recovered)))
        newest = max(trial.acknowledged, default=0)
        assert reached >= newest, f"an acknowledged commit is lost after {trial}"
        compacted = recovered.reopened()
        table = later(table_in(compacted))
        assert "wait" not in table.compact(strategy="full", executor="serial").sentence, str(trial)
        assert merged(table) == STATES[reached], str(trial)
        base = {row["id"]: (row["v"], row["p"]) for row in table.base.scan().to_arrow().to_pylist()}
        assert base == STATES[reached], str(trial)
        stream_and_changes(recovered, [], is_later=True)
        assert merged(table_in(recovered)) == STATES[-1], str(trial)
        users = [each.commit_user for each in table_in(recovered).snapshots() if each.commit_user]
        assert sorted(users) == ["delete", "move", "stream", "stream", "update"], str(trial)


# ------------------------------------------------------- the end of a batch that hangs


def hanging() -> tuple[CrashableStorage, MixedBatch]:
    """A table with a batch that has begun and does nothing, and a change that is newer."""
    storage = filled()
    batch = table_in(storage).begin()
    table_in(storage).write(rows(_1=("b", 1)))
    return storage, batch


def in_storage(batch: MixedBatch, storage: CrashableStorage) -> MixedBatch:
    """Return the batch, which continues after the fault of another process."""
    pair, begun = table_in(storage)._pair, batch._begun
    moved = MixedBatch.__new__(MixedBatch)
    moved._pair, moved._is_open = pair, True
    lease = Lease(leases_of(pair), begun.lease._stored, pair.base.environment)
    moved._begun = replace(begun, pair=pair, lease=lease)
    return moved


def is_published(batch: MixedBatch, storage: CrashableStorage) -> bool:
    """Let the batch commit; return False if that is refused."""
    try:
        in_storage(batch, storage).write(rows(_1=("x", 1), _2=("x", 1)))
    except lake.LockUnavailableError:
        return False
    return True


def end(storage: CrashableStorage, acknowledged: list[int]) -> None:
    acknowledged.extend(table_in(storage).end_batch().transactions)


@SAMPLED
def test_the_end_of_a_batch_that_dies_refuses_its_commit_or_not_and_a_repeated_one_does():
    start, batch = hanging()
    alone = start.reopened()
    assert is_published(batch, alone)
    after = {1: ("b", 1), 2: ("x", 1), 3: ("a", 2)}
    assert merged(table_in(alone)) == after
    for trial in sampled_states(end, start=start):
        recovered = trial.reopened()
        assert merged(table_in(recovered)) == STATES[1], str(trial)
        hung = recovered.reopened()
        committed = is_published(batch, hung)
        assert not (committed and trial.acknowledged), str(trial)
        assert merged(table_in(hung)) == (after if committed else STATES[1]), str(trial)
        end(recovered, [])
        table = table_in(recovered)
        assert leased_batches(table._pair.change.load().metadata) == {}, str(trial)
        assert not is_published(batch, recovered), str(trial)
        with table_in(recovered).begin() as new:  # at once, before the lease would be stale
            new.update("id = 2", {"v": "new"})
        assert merged(table_in(recovered)) == {**STATES[1], 2: ("new", 1)}, str(trial)
