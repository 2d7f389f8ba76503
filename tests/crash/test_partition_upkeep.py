"""Partitions expire, are marked, counted and indexed: a fault at any call costs no other row."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest_list import manifests_of
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from lakeformat.testing import CrashableStorage
from tests.crash.interrupted import Interrupted
from tests.crash.simulated import simulated
from tests.sampling import sampled_moments, sampled_states

LAYOUT = TableLayout("wh/shop.db/orders")
KEYED = {"primary_key": ["dt", "id"], "options": {"bucket": "1"}}
APPEND: dict = {"options": {"bucket": "-1"}}
TABLES = pytest.mark.parametrize("table", [KEYED, APPEND], ids=["keyed", "append"])
OLD, NEW = ("2020-01-01", "2020-01-02"), "2999-01-01"
_names = itertools.count()


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(len(storage.files()) + 100))


def fill(storage, table: dict, **options: str):
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    how = {**table, "options": {**table["options"], **options}}
    columns = [("dt", "STRING"), ("id", "BIGINT")]
    catalog.create_table("shop.orders", columns, partition_by=["dt"], **how)
    for number in range(2):
        days = [*OLD, NEW]
        rows = {"dt": days, "id": [number * 10 + at for at in range(len(days))]}
        opened(storage).write(pa.table(rows))
    return storage


def content(storage, snapshot: int | None = None) -> list[tuple]:
    rows = load_table(storage, LAYOUT, simulated()).scan(snapshot=snapshot).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def expire(storage, acknowledged=None) -> None:
    report = opened(storage).expire_partitions(expiration_time="1 d", batch_size=1)
    if acknowledged is not None:
        acknowledged.append(report.snapshot_ids)


@TABLES
def test_a_fault_at_any_call_of_an_expiry_leaves_partitions_whole_or_gone(table):
    start = fill(CrashableStorage(), table)
    before = content(start)
    young = [row for row in before if row[0] == NEW]
    for trial in sampled_states(expire, start=start):
        storage = trial.reopened()
        left = content(storage)
        days = {row[0] for row in left}
        assert left == [row for row in before if row[0] in days], str(trial)
        assert days >= {NEW}, str(trial)
        # Batch by batch, in the order of their values.
        assert days - {NEW} == set(OLD[len(OLD) - len(days) + 1 :]), str(trial)
        expire(storage)
        assert content(storage) == young, str(trial)
        assert content(storage, 2) == before, str(trial)


def mark(storage, acknowledged=None) -> None:
    report = opened(storage).mark_partitions_done(
        [{"dt": OLD[0]}], actions=["success-file", "done-partition"]
    )
    if acknowledged is not None:
        acknowledged.append(report.partitions)


def test_a_fault_at_any_call_of_a_mark_is_made_good_by_the_next():
    start = fill(CrashableStorage(), APPEND)
    before = content(start)
    for trial in sampled_states(mark, start=start):
        storage = trial.reopened()
        mark(storage)
        times = json.loads(storage.read(f"{LAYOUT.root}/dt={OLD[0]}/_SUCCESS"))
        assert times["creationTime"] <= times["modificationTime"], str(trial)
        assert storage.directory_exists(f"{LAYOUT.root}/dt={OLD[0]}.done"), str(trial)
        assert content(storage) == before, str(trial)


def analyze(storage, acknowledged=None) -> None:
    report = opened(storage).analyze("all", commit=lake.CommitId("analyze", 1))
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


def merge_manifests(storage, acknowledged=None) -> None:
    report = opened(storage).compact_manifests()
    if acknowledged is not None:
        acknowledged.append(report.snapshot_id)


@TABLES
@pytest.mark.parametrize("work", [analyze, merge_manifests])
def test_a_fault_at_any_call_changes_no_row_and_the_next_try_ends_it(table, work: Callable):
    start = fill(CrashableStorage(), table)
    before = content(start)
    for trial in sampled_states(work, start=start):
        storage = trial.reopened()
        assert content(storage) == before, str(trial)
        work(storage)
        assert content(storage) == before, str(trial)
        assert opened(storage).latest_snapshot().id == 3, str(trial)


@TABLES
def test_a_fault_at_any_call_of_a_rewrite_of_indexes_changes_no_row(table):
    options = {
        "file-index.bitmap.columns": "id",
        "file-index.in-manifest-threshold": "1 b",
    }
    start = fill(CrashableStorage(), table)
    catalog = FileSystemCatalog(start, "wh", simulated())
    catalog.alter_table("shop.orders", *(lake.set_option(*each) for each in options.items()))
    before = content(start)
    for trial in sampled_states(rewrite_serially, start=start):
        storage = trial.reopened()
        assert content(storage) == before, str(trial)
        rewrite_serially(storage)
        assert content(storage) == before, str(trial)
        found = opened(storage).scan(where="id = 10").to_arrow()
        assert found["id"].to_pylist() == [10], str(trial)


def rewrite_serially(storage, acknowledged=None) -> None:
    from lakeformat.paimon.file_indexes.rewrite import rewrite_file_indexes

    report = rewrite_file_indexes(opened(storage)._handle, executor="serial")
    if acknowledged is not None:
        acknowledged.append(report.snapshot_ids)


def append(storage) -> None:
    opened(storage).write(pa.table({"dt": [OLD[0], NEW], "id": [77, 78]}))


def new_storage(table: dict) -> MemoryStorage:
    return fill(MemoryStorage(f"partitions-{next(_names)}"), table)


@TABLES
def test_manifests_merged_on_demand_while_others_append_hold_every_file(table):
    alone = new_storage(table)
    append(alone)
    expected = content(alone)
    watched = Interrupted(new_storage(table), 0, lambda: None)
    load_table(watched, LAYOUT, simulated(200)).compact_manifests()
    for moment in sampled_moments(watched.calls):
        storage = new_storage(table)
        interrupted = Interrupted(storage, moment, lambda storage=storage: append(storage))
        load_table(interrupted, LAYOUT, simulated(200)).compact_manifests()
        if not interrupted.happened:
            append(storage)
        assert content(storage) == expected, moment
        handle = opened(storage)._handle
        head = opened(storage).latest_snapshot()
        entries = manifests_of(storage, handle.layout, head)
        assert sum(each.num_added_files for each in entries) == 8, moment


def merge_and_append(storage) -> None:
    merge_manifests(storage)
    append(storage)


def test_manifests_another_has_merged_first_are_merged_anew_with_what_came_since():
    watched = Interrupted(new_storage(APPEND), 0, lambda: None)
    load_table(watched, LAYOUT, simulated(200)).compact_manifests()
    for moment in sampled_moments(watched.calls):
        storage = new_storage(APPEND)
        interrupted = Interrupted(
            storage, moment, lambda storage=storage: merge_and_append(storage)
        )
        report = load_table(interrupted, LAYOUT, simulated(200)).compact_manifests()
        head = opened(storage).latest_snapshot()
        if report.snapshot_id == head.id:
            entries = manifests_of(storage, opened(storage)._handle.layout, head)
            assert len(entries) == 1, moment


def test_a_compaction_of_a_partition_that_expires_meanwhile_is_told_who_was_first():
    storage = new_storage(KEYED)
    table = opened(storage)
    writer = table.new_writer()
    writer.write(pa.table({"dt": [OLD[0]], "id": [5]}))
    messages = writer.prepare()
    [unit] = [each for each in table.plan_compaction().units if OLD[0] in each.path]
    from lakeformat.paimon.compact.run import run_unit

    compacted = run_unit(table._handle, unit)
    expire(storage)
    with pytest.raises(lake.CommitConflictError, match=f"OVERWRITE.*{OLD[0]}|{OLD[0]}.*OVERWRITE"):
        table.commit([compacted])
    table.commit(messages)  # rows that come later are rows: the next expiry takes them
    assert (OLD[0], 5) in content(storage)
    assert {row[0] for row in content(storage)} == {OLD[0], NEW}
