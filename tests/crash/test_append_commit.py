"""Appends die at every storage call; the next reader finds each acknowledged row once."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import UnavailableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.testing import CrashableStorage, Fault, FaultKind, every_fault
from tests.crash.references import referenced_files
from tests.crash.simulated import simulated as simulated_after
from tests.sampling import SEED, count, sampled_faults, sampled_states

ROOT = "wh/shop.db/orders"


def simulated() -> Environment:
    """A world in which every run makes the same calls."""
    ticks, names = itertools.count(1_700_000_000_000), itertools.count()
    return Environment(
        now_millis=lambda: next(ticks),
        new_id=lambda: f"{next(names):08d}",
        sleep_seconds=lambda seconds: None,
        random_fraction=lambda: 0.5,
    )


def table_in(storage, environment=None) -> lake.Table:
    return load_table(storage, TableLayout(ROOT), environment or simulated())


def new_table_storage() -> CrashableStorage:
    storage = CrashableStorage()
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")])
    return storage


def append_three_times(storage, acknowledged):
    """Three commits, each acknowledged with the rows it brought."""
    table = table_in(storage, environment=simulated_after(len(storage.files())))
    for number in range(3):
        rows = [number * 10 + i for i in range(3)]
        table.write(pa.table({"id": rows}), commit=lake.CommitId("run", number))
        acknowledged.append(rows)


def rows_of(table) -> list[int]:
    return table.scan().to_arrow()["id"].to_pylist()


def check_table(trial) -> None:
    """Acknowledged rows exist once, other commits fully or not at all; no reference dangles."""
    storage = trial.reopened()
    table = table_in(storage)
    rows = rows_of(table)
    assert len(rows) == len(set(rows)), "a row is there twice"
    for acknowledged in trial.acknowledged:
        assert set(acknowledged) <= set(rows), "an acknowledged row is gone"
    for number in range(3):
        batch = {number * 10 + i for i in range(3)}
        assert batch & set(rows) in (set(), batch), "half a commit is visible"
    assert referenced_files(table, storage, TableLayout(ROOT)) <= set(storage.files())
    assert [s.id for s in table.snapshots()] == list(range(1, len(table.snapshots()) + 1))


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
def test_a_fault_at_any_storage_call_loses_and_doubles_nothing(seed):
    for trial in sampled_states(append_three_times, start=new_table_storage(), seed=seed):
        try:
            check_table(trial)
        except AssertionError as error:
            error.add_note(f"in {trial}\n{trial.storage.trace()}")
            raise


@pytest.mark.parametrize("seed", range(SEED, SEED + count(1, whole=4)))
def test_repeating_an_interrupted_run_publishes_every_commit_once(seed):
    expected = [0, 1, 2, 10, 11, 12, 20, 21, 22]
    for trial in sampled_states(append_three_times, start=new_table_storage(), seed=seed):
        recovered = trial.reopened()
        append_three_times(recovered, [])
        assert rows_of(table_in(recovered)) == expected, str(trial)
        assert [s.commit_identifier for s in table_in(recovered).snapshots()] == [0, 1, 2]


def test_a_table_that_was_being_created_is_there_whole_or_not_at_all():
    def create(storage, acknowledged):
        catalog = FileSystemCatalog(storage, "wh", simulated())
        catalog.create_database("shop", exist_ok=True)
        catalog.create_table("shop.orders", [("id", "BIGINT")])
        acknowledged.append("shop.orders")

    for trial in sampled_faults(create):
        trial.run()
        storage = trial.reopened()
        catalog = FileSystemCatalog(storage, "wh", simulated())
        if trial.acknowledged:
            catalog.table("shop.orders")
        catalog.create_database("shop", exist_ok=True)
        table = catalog.create_table("shop.orders", [("id", "BIGINT")], exist_ok=True)
        assert table.schema.column_names == ["id"], str(trial)


def calls_of(operation: str, path_part: str, commit: lake.CommitId | None = None) -> list[int]:
    """The numbers of some calls of one undisturbed append."""
    storage = new_table_storage().reopened()
    table_in(storage).write(pa.table({"id": [1]}), commit=commit)
    return [
        call.number
        for call in storage.log
        if call.operation == operation and path_part in call.path
    ]


def test_a_lost_answer_of_the_publication_is_resolved_by_reading_back():
    [publication] = calls_of("create", "snapshot-1")
    storage = new_table_storage().reopened(Fault(publication, FaultKind.FAIL_AFTER))

    report = table_in(storage).write(pa.table({"id": [1]}))

    assert (report.snapshot_id, report.replayed, report.attempts) == (1, False, 1)
    assert rows_of(table_in(storage.reopened())) == [1]


def test_an_append_that_fails_before_publication_leaves_nothing_behind():
    before = set(new_table_storage().files())
    for trial in every_fault(append_once, start=new_table_storage()):
        if trial.fault.kind is not FaultKind.FAIL_BEFORE:
            continue
        trial.run()
        if isinstance(trial.error, UnavailableError):
            assert set(trial.storage.files()) == before, str(trial)


def append_once(storage, acknowledged):
    table_in(storage).write(pa.table({"id": [1]}))
    acknowledged.append([1])
