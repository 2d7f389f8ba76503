"""A batch in transaction order dies at any storage call: it is published once, or not at all."""

from __future__ import annotations

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
BEFORE = {1: "john", 2: "amy", 3: "bob", 4: "dan"}
AFTER = {
    "table": {1: "john", 2: "AMY", 3: "bob", 4: "dan", 9: "zed"},
    None: {**BEFORE, 2: "AMY", 9: "zed"},
}
BATCH = pa.table({"id": [1, 2, 9], "name": ["join-fixed", "AMY", "zed"]})
OVERWRITES = pytest.mark.parametrize("overwrite", ["table", None])


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(len(storage.files())))


def new_storage() -> CrashableStorage:
    """The batch is as of snapshot 1; a newer row is merged with older ones, another is not."""
    storage = CrashableStorage()
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("name", "STRING")]
    catalog.create_table("shop.orders", columns, primary_key=["id"], options={"bucket": "1"})
    table = opened(storage)
    table.write(pa.table({"id": [1, 2], "name": ["join", "amy"]}))
    table.write(pa.table({"id": [1, 3], "name": ["john", "bob"]}))
    table.compact(executor="serial")
    table.write(pa.table({"id": [4], "name": ["dan"]}))
    return storage


def write(storage, overwrite) -> None:
    opened(storage).write(
        BATCH,
        overwrite=overwrite,
        commit=lake.CommitId("nightly", 1),
        read_snapshot=1,
        conflict="transaction-order",
    )


def content(storage) -> dict[int, str]:
    rows = load_table(storage, LAYOUT, simulated()).scan().to_arrow().to_pylist()
    return {row["id"]: row["name"] for row in rows}


def files(storage) -> set[str]:
    return {path for path in storage.files(LAYOUT.root) if "/bucket-" in path}


@OVERWRITES
def test_a_fault_at_any_storage_call_leaves_it_done_or_not_and_the_next_try_ends_it(overwrite):
    def once(storage, acknowledged):
        write(storage, overwrite)
        acknowledged.append(1)

    for trial in sampled_states(once, start=new_storage()):
        storage = trial.reopened()
        assert content(storage) in (BEFORE, AFTER[overwrite]), str(trial)
        assert not trial.acknowledged or content(storage) == AFTER[overwrite], str(trial)
        write(storage, overwrite)
        assert content(storage) == AFTER[overwrite], f"in {trial}\n{trial.storage.trace()}"
        assert opened(storage).latest_snapshot().id == 5, str(trial)


@OVERWRITES
def test_a_batch_that_failed_leaves_no_file(overwrite):
    def once(storage, acknowledged):
        before = files(storage)
        try:
            write(storage, overwrite)
        except CommitOutcomeUnknownError:
            raise
        except UnavailableError:
            acknowledged.append((before, files(storage)))
            raise

    failed = 0
    for trial in sampled_faults(once, start=new_storage()):
        trial.run()
        for before, after in trial.acknowledged:
            failed += 1
            assert after == before, str(trial)
    assert failed > 0
