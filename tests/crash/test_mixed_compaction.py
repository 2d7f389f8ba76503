"""Compactions of Mixed tables die at every storage call; the merged rows do not change."""

from __future__ import annotations

import pytest

from lakeformat.testing import CrashableStorage
from tests.crash.test_mixed_writes import merged, new_pair, states, table_in, write_three_times
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))


def with_changes() -> CrashableStorage:
    """A table whose base store has the rows of the first commit, with two newer commits."""
    storage = new_pair()
    write_three_times(storage, [], first=1)
    compact(storage, [])
    write_three_times(storage, [])
    return storage


def compact(storage: CrashableStorage, acknowledged: list[int]) -> None:
    report = table_in(storage).compact(strategy="full", executor="serial")
    acknowledged.extend(report.snapshot_ids)


def merges(storage: CrashableStorage) -> int:
    return sum(each.commit_kind == "COMPACT" for each in table_in(storage).snapshots())


@SEEDS
def test_a_fault_at_any_storage_call_leaves_the_same_rows_and_a_retry_completes_it(seed):
    for trial in sampled_states(compact, start=with_changes(), seed=seed):
        recovered = trial.reopened()
        assert merged(table_in(recovered)) == states()[-1], str(trial)
        before = merges(recovered)
        assert before in (1, 2), str(trial)
        assert before == 2 or not trial.acknowledged, f"an acknowledged merge is lost after {trial}"
        compact(recovered, [])
        assert merges(recovered) == 2, str(trial)
        base = table_in(recovered).base.scan().to_arrow().to_pydict()
        stored = dict(zip(base["id"], base["v"], strict=True))
        assert stored == merged(table_in(recovered)) == states()[-1], str(trial)
        assert len(stored) == len(base["id"]), str(trial)
