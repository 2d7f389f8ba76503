"""Keyed writes die at every storage call: a key has the row of the last commit that is there."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.errors import CommitOutcomeUnknownError, UnavailableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import sampled_faults, sampled_states

LAYOUT = TableLayout("wh/shop.db/orders")
OPTIONS = {"bucket": "1", "changelog-producer": "input", "write-buffer-size": "1 kb"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "1"}
WRITES = [
    (
        [("mon", 1, "a"), ("tue", 1, "b"), ("mon", 2, "c"), ("mon", 1, "d")],
        ["+I", "+I", "+I", "+U"],
    ),
    ([("mon", 2, "c"), ("tue", 1, "e")], ["-D", "+U"]),
]
STATES = [
    {},
    {("mon", 1): "d", ("mon", 2): "c", ("tue", 1): "b"},
    {("mon", 1): "d", ("tue", 1): "e"},
]


@pytest.fixture(autouse=True)
def disk(tmp_path, monkeypatch):
    """The folder of temporary files; none remains."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


def new_table_storage(options: Mapping[str, str] = OPTIONS) -> CrashableStorage:
    storage = CrashableStorage()
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("dt", "STRING"), ("id", "BIGINT"), ("note", "STRING")]
    catalog.create_table(
        "shop.orders", columns, primary_key=["dt", "id"], partition_by=["dt"], options=options
    )
    return storage


def write_all(storage, acknowledged):
    """Each write is a commit, acknowledged by its number."""
    table = load_table(storage, LAYOUT, simulated(len(storage.files())))
    for number, (rows, kinds) in enumerate(WRITES, start=1):
        columns = dict(zip(("dt", "id", "note"), map(list, zip(*rows, strict=True)), strict=True))
        table.write(pa.table(columns), kinds, commit=lake.CommitId("run", number))
        acknowledged.append(number)


def content(storage) -> dict:
    rows = load_table(storage, LAYOUT, simulated()).scan().to_arrow().to_pylist()
    found = {(row["dt"], row["id"]): row["note"] for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def data_files(storage) -> set[str]:
    return {path for path in storage.files(LAYOUT.root) if "/bucket-" in path or "/index/" in path}


@pytest.mark.parametrize("options", [OPTIONS, DYNAMIC], ids=["fixed", "dynamic"])
def test_a_fault_at_any_storage_call_leaves_the_state_after_some_commit(options):
    for trial in sampled_states(write_all, start=new_table_storage(options)):
        storage = trial.reopened()
        states = STATES[len(trial.acknowledged) :][:2]
        assert content(storage) in states, f"in {trial}\n{trial.storage.trace()}"
        write_all(storage, [])  # as a retried task does
        assert content(storage) == STATES[-1], str(trial)
        table = load_table(storage, LAYOUT, simulated())
        assert [snapshot.commit_identifier for snapshot in table.snapshots()] == [1, 2], str(trial)


@pytest.mark.parametrize("options", [OPTIONS, DYNAMIC], ids=["fixed", "dynamic"])
def test_a_write_that_failed_leaves_no_file(options):
    def write_once(storage, acknowledged):
        before = data_files(storage)
        table = load_table(storage, LAYOUT, simulated(len(storage.files())))
        try:
            table.write(pa.table({"dt": ["mon", "tue"] * 3, "id": range(6), "note": ["x"] * 6}))
        except CommitOutcomeUnknownError:
            raise
        except UnavailableError:
            acknowledged.append((before, data_files(storage)))
            raise

    failed = 0
    for trial in sampled_faults(write_once, start=new_table_storage(options)):
        trial.run()
        for before, after in trial.acknowledged:
            failed += 1
            assert after == before, str(trial)
    assert failed > 0
