"""DELETE and UPDATE as of a snapshot die at every storage call, and meet a stream: newer rows
remain, and each other row is changed once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from tests.crash.interrupted import Interrupted
from tests.crash.simulated import simulated
from tests.sampling import sampled_moments, sampled_states

LAYOUT = TableLayout("wh/shop.db/orders")
TABLES = pytest.mark.parametrize(
    "options",
    [{"bucket": "1"}, {"bucket": "1", "deletion-vectors.enabled": "true"}],
    ids=["keyed", "vectors"],
)
AS_OF: dict[str, Any] = {
    "commit": lake.CommitId("nightly", 1),
    "read_snapshot": 1,
    "conflict": "transaction-order",
}
_names = itertools.count()


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(next(_names) + 100))


def fill(storage, options: dict[str, str]):
    """Ids 0 to 7 with the number 0; since then a stream has changed 2, whose row was merged, and 5.

    The batch is as of snapshot 1.
    """
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("n", "BIGINT")]
    catalog.create_table("shop.orders", columns, primary_key=["id"], options=options)
    add(storage, range(8), 0)
    add(storage, [2, 20], 100)
    opened(storage).compact(executor="serial")
    add(storage, [5, 21], 100)
    return storage


def add(storage, ids, number: int) -> None:
    opened(storage).write(pa.table({"id": [*ids], "n": [number] * len([*ids])}))


def content(storage) -> dict[int, int]:
    """Return the rows, of which some wait for a compaction if the table has deletion vectors."""
    copy = MemoryStorage(f"merged-{next(_names)}")
    for path, found in storage.files().items():
        copy.overwrite(path, found)
    opened(copy).compact(executor="serial", strategy="full")
    rows = opened(copy).scan().to_arrow().to_pylist()
    return {row["id"]: row["n"] for row in rows}


def delete(storage, acknowledged=None) -> None:
    table = load_table(storage, LAYOUT, simulated(len(storage.files())))
    report = table.delete("id IN (1, 2, 5, 6)", **AS_OF)
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


def count_up(storage, acknowledged=None) -> None:
    """A change that shows if it happens twice."""
    table = load_table(storage, LAYOUT, simulated(len(storage.files())))
    one_more = {"n": lambda rows: pc.add(rows["n"], 1)}
    report = table.update("id IN (1, 2, 5, 6)", one_more, **AS_OF)
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


BEFORE = {**dict.fromkeys(range(8), 0), **dict.fromkeys((2, 20, 5, 21), 100)}
AFTER = {
    delete: {key: number for key, number in BEFORE.items() if key not in (1, 6)},
    count_up: {**BEFORE, 1: 1, 6: 1},
}
CHANGES = pytest.mark.parametrize("change", [delete, count_up])


@pytest.mark.sampled(1)
@TABLES
@CHANGES
def test_a_fault_at_any_storage_call_leaves_it_done_or_not_and_the_next_try_ends_it(
    options, change
):
    for trial in sampled_states(change, start=fill(CrashableStorage(), options)):
        storage = trial.reopened()
        found = content(storage)
        assert found in (BEFORE, AFTER[change]), str(trial)
        assert not trial.acknowledged or found == AFTER[change], str(trial)
        change(storage)
        assert content(storage) == AFTER[change], f"in {trial}\n{trial.storage.trace()}"
        assert len(opened(storage).snapshots()) == 5, str(trial)


def write_some(storage) -> None:
    """A stream changes a row of the batch, and another one."""
    add(storage, [1, 7], 200)


def write_and_compact(storage) -> None:
    write_some(storage)
    opened(storage).compact(executor="serial", strategy="full")


@pytest.mark.sampled(1)
@TABLES
@CHANGES
@pytest.mark.parametrize("stream", [write_some, write_and_compact])
def test_a_stream_at_any_moment_keeps_its_rows_and_the_others_are_changed_once(
    options, change, stream
):
    expected = {**AFTER[change], 1: 200, 7: 200}
    for moment in sampled_moments(calls_of(change, options)):
        storage = fill(MemoryStorage(f"in-order-{next(_names)}"), options)
        interrupted = Interrupted(storage, moment, lambda storage=storage: stream(storage))
        change(interrupted)
        assert interrupted.happened
        assert content(storage) == expected, f"at {moment}: {interrupted.calls[moment - 1]}"
        assert unreferenced(storage) == set(), f"at {moment}: {interrupted.calls[moment - 1]}"


def calls_of(change: Callable, options: dict[str, str]) -> list[tuple[str, str]]:
    storage = fill(MemoryStorage(f"in-order-{next(_names)}"), options)
    watched = Interrupted(storage, 0, lambda: None)
    change(watched)
    return watched.calls


def unreferenced(storage) -> set[str]:
    """Data files that no snapshot has ever had."""
    table = opened(storage)
    known = {
        entry.file.file_name
        for snapshot in table.snapshots()
        for entry in plan_files(table._handle, snapshot)
    }
    paths = {path for path in storage.files(LAYOUT.root) if "/bucket-" in path}
    return {path for path in paths if path.rpartition("/")[2] not in known}
