"""Expiries of Mixed tables die at every storage call; rows remain, and a retry expires the rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lakeformat.mixed.table import MixedTable
from lakeformat.testing import CrashableStorage
from tests.crash.test_mixed_compaction import with_changes
from tests.crash.test_mixed_writes import merged, states, table_in
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))


def expire(storage: CrashableStorage, acknowledged: list[int]) -> None:
    """Expire all but the newest snapshots, a day later."""
    base = table_in(storage)._pair.base
    now = base.environment.now_millis() + 24 * 60 * 60 * 1000
    handle = replace(base, environment=replace(base.environment, now_millis=lambda: now))
    table = MixedTable(replace(table_in(storage)._pair, base=handle))
    report = table.expire_snapshots(older_than=timedelta(hours=1))
    acknowledged.extend(report.snapshots)


@SEEDS
def test_a_fault_at_any_storage_call_keeps_the_rows_and_a_retry_expires_the_rest(seed):
    for trial in sampled_states(expire, start=with_changes(), seed=seed):
        recovered = trial.reopened()
        assert merged(table_in(recovered)) == states()[-1], str(trial)
        expire(recovered, [])
        table = table_in(recovered)
        assert sorted(each.store for each in table.snapshots()) == ["base", "change"], str(trial)
        assert merged(table) == states()[-1], str(trial)
