"""DELETE and UPDATE die at every storage call, and meet every other commit: once or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.errors import CommitOutcomeUnknownError
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
    "table",
    [
        {"options": {"bucket": "-1"}},
        {"options": {"bucket": "-1", "deletion-vectors.enabled": "true"}},
        {"primary_key": ["id"], "options": {"bucket": "1"}},
    ],
    ids=["copy", "marks", "keyed"],
)
COMMIT = lake.CommitId("nightly", 1)
_names = itertools.count()


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(next(_names) + 100))


def fill(storage, table: dict):
    """Ids 0 to 7 in two files, each with the number 0."""
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT"), ("n", "BIGINT")], **table)
    for first in (0, 4):
        add(storage, range(first, first + 4))
    return storage


def add(storage, ids) -> None:
    ids = list(ids)
    opened(storage).write(pa.table({"id": ids, "n": [0] * len(ids)}))


def content(storage) -> list[tuple]:
    rows = load_table(storage, LAYOUT, simulated()).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def delete(storage, acknowledged=None) -> None:
    table = load_table(storage, LAYOUT, simulated(len(storage.files())))
    report = table.delete("id IN (1, 2, 5)", commit=COMMIT)
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


def count_up(storage, acknowledged=None) -> None:
    """A change that shows if it happens twice."""
    table = load_table(storage, LAYOUT, simulated(len(storage.files())))
    one_more = {"n": lambda rows: pc.add(rows["n"], 1)}
    report = table.update("id IN (1, 2, 5)", one_more, commit=COMMIT)
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


BEFORE = [(number, 0) for number in range(8)]
AFTER = {
    delete: [row for row in BEFORE if row[0] not in (1, 2, 5)],
    count_up: sorted((number, int(number in (1, 2, 5))) for number in range(8)),
}
CHANGES = pytest.mark.parametrize("change", [delete, count_up])


@pytest.mark.sampled(3)
@TABLES
@CHANGES
def test_a_fault_at_any_storage_call_leaves_it_done_or_not_and_the_next_try_ends_it(table, change):
    for trial in sampled_states(change, start=fill(CrashableStorage(), table)):
        storage = trial.reopened()
        assert content(storage) in (BEFORE, AFTER[change]), str(trial)
        assert not trial.acknowledged or content(storage) == AFTER[change], str(trial)
        change(storage)
        assert content(storage) == AFTER[change], f"in {trial}\n{trial.storage.trace()}"
        assert len(opened(storage).snapshots()) == 3, str(trial)


def insert(storage) -> None:
    add(storage, [20, 21])


def compact(storage) -> None:
    opened(storage).compact(executor="serial")


def delete_others(storage) -> None:
    opened(storage).delete("id IN (2, 3, 6)")


def count_up_others(storage) -> None:
    opened(storage).update("id IN (2, 3, 6)", {"n": lambda rows: pc.add(rows["n"], 10)})


def compact_and_expire(storage) -> None:
    """The rows that were read no longer exist."""
    insert(storage)
    table = opened(storage)
    table.compact(executor="serial", order_by=None if table.schema.primary_keys else ["id"])
    table.expire_snapshots(retain_max=1, retain_min=1)


def overwrite(storage) -> None:
    opened(storage).write(pa.table({"id": [1, 9], "n": [5, 5]}), overwrite={})


def calls_of(change: Callable, table: dict) -> list[tuple[str, str]]:
    watched = Interrupted(new_storage(table), 0, lambda: None)
    change(watched)
    return watched.calls


def new_storage(table: dict) -> MemoryStorage:
    return fill(MemoryStorage(f"row-changes-{next(_names)}"), table)


@pytest.mark.sampled(4)
@TABLES
@pytest.mark.parametrize(
    ("change", "rival"),
    [
        (delete, insert),
        (delete, delete_others),
        (delete, overwrite),
        (delete, compact_and_expire),
        (count_up, compact),
        (count_up, count_up_others),
    ],
)
def test_a_rival_at_any_moment_loses_nothing_and_nothing_happens_twice(table, change, rival):
    in_either_order = []
    for first, second in ((change, rival), (rival, change)):
        storage = new_storage(table)
        first(storage)
        second(storage)
        in_either_order.append(content(storage))
    for moment in sampled_moments(calls_of(change, table)):
        storage = new_storage(table)
        interrupted = Interrupted(storage, moment, lambda storage=storage: rival(storage))
        try:
            change(interrupted)
        except CommitOutcomeUnknownError:  # published, and compacted and expired right after that
            assert rival is compact_and_expire
            change(storage)
        assert interrupted.happened
        assert content(storage) in in_either_order, moment
        if rival is not compact_and_expire:  # then no snapshot names the older files
            assert unreferenced(storage) == set(), f"at {moment}: {interrupted.calls[moment - 1]}"


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
