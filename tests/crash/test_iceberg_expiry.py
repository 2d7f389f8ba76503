"""An expiry of an Iceberg table dies at every storage call: no kept snapshot loses a file."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lakeformat import LakeError
from lakeformat.iceberg.expire.expire import ExpiryRequest, expire_snapshots
from lakeformat.iceberg.table import IcebergTable
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import NOW_MILLIS, simulated
from tests.sampling import SEED, count, sampled_states
from tests.unit.iceberg.path_table import handle_on, path_table

LATER = NOW_MILLIS + 1000


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Each run makes its calls in one order."""
    monkeypatch.setattr("lakeformat.tables.parallel._PER_PROCESSOR", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)


def opened(storage, first: int = 0, now: int = NOW_MILLIS) -> IcebergTable:
    return IcebergTable(handle_on(storage, replace(simulated(first), now_millis=lambda: now)))


def with_history() -> CrashableStorage:
    """A tag keeps the first of four snapshots; the files of the second are not live any more.

    The last one merges manifests, so its files are also named by a manifest that expires.
    """
    storage = CrashableStorage()
    path_table(storage, properties={"commit.manifest.min-count-to-merge": "2"})
    opened(storage, 1).write(pa.table({"id": pa.array([1], pa.int32())}))
    opened(storage, 2).tags.create("first")
    for number in (2, 3):
        rows = pa.table({"id": pa.array([number], pa.int32())})
        opened(storage, number + 1).write(rows, overwrite="table")
    opened(storage, 5).write(pa.table({"id": pa.array([4], pa.int32())}))
    return storage


def expire(storage, acknowledged):
    handle = opened(storage, 9, LATER)._handle
    report = expire_snapshots(handle, ExpiryRequest(older_than=LATER), dry_run=False)
    if report.is_complete:
        acknowledged.append(report.deleted.total)


def rows(table: IcebergTable, **choice) -> list[int]:
    return sorted(table.scan(**choice).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=3)))
def test_a_fault_at_any_call_leaves_the_rows_of_every_kept_snapshot(seed):
    for trial in sampled_states(expire, start=with_history(), seed=seed):
        storage = trial.reopened()
        try:
            for _ in range(2):  # as it was left, and after another expiry
                table = opened(storage, 20, LATER)
                assert rows(table) == [3, 4]
                assert rows(table, tag="first") == [1]
                assert len(table.snapshots()) in (1, 4)
                expire(storage, [])
            assert len(opened(storage).snapshots()) == 1
        except (AssertionError, LakeError) as error:
            error.add_note(f"after {trial}\n{trial.storage.trace()}")
            raise


def test_without_a_fault_only_the_files_of_kept_snapshots_are_left():
    storage = with_history()
    done: list[int] = []
    expire(storage, done)
    data = [path for path in storage.files() if path.endswith(".parquet")]
    assert len(data) == 3
    assert done[0] > 3
