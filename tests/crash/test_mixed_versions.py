"""Compactions of tables with a version field die at every storage call; the newest rows remain."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeformat.testing import CrashableStorage
from tests.crash.test_mixed_compaction import compact, merges
from tests.crash.test_mixed_writes import COLUMNS, merged, new_pair, table_in
from tests.sampling import SEED, count, sampled_states

SEEDS = pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
VERSIONED = COLUMNS.append(pa.field("version", pa.int64()))
WANTED = {1: "new", 2: "second", 3: "first"}


def with_late_rows() -> CrashableStorage:
    """A table whose base store has newer rows than some of the changes."""
    storage = new_pair(VERSIONED, {"lake.version-field": "version"})
    table = table_in(storage)
    table.write(rows((1, "first", 5), (2, "first", 5), (3, "first", 5)))
    compact(storage, [])
    table.write(rows((1, "late", 3), (2, "second", 6), (3, "late", 4)))
    table.write(rows((1, "new", 7), (2, "late", 4)))
    return storage


def rows(*given: tuple[int, str, int]) -> pa.Table:
    return pa.table([*map(list, zip(*given, strict=True))], schema=VERSIONED)


@SEEDS
def test_a_fault_at_any_storage_call_keeps_the_newest_rows_and_a_retry_completes_it(seed):
    for trial in sampled_states(compact, start=with_late_rows(), seed=seed):
        recovered = trial.reopened()
        assert merged(table_in(recovered)) == WANTED, str(trial)
        compact(recovered, [])
        assert merges(recovered) == 2, str(trial)
        base = table_in(recovered).base.scan().to_arrow().to_pydict()
        assert dict(zip(base["id"], base["v"], strict=True)) == WANTED, str(trial)
        assert merged(table_in(recovered)) == WANTED, str(trial)
