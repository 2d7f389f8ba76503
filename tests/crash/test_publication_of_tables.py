"""A published table dies at every storage call: readers of Iceberg see the old or the new head."""

from __future__ import annotations

import pyarrow as pa

import lakeformat as lake
from lakeformat.publish.versions import PublishedVersions
from lakeformat.testing import CrashableStorage, every_fault
from tests.crash.simulated import simulated
from tests.sampling import SEED, sample
from tests.unit.publish.published import ROOT, catalog_in, content, iceberg, published_table, seen

COLUMNS = [("id", "BIGINT")]


def start() -> CrashableStorage:
    storage = CrashableStorage()
    table = published_table(storage, COLUMNS)
    table.write(pa.table({"id": [0]}))
    return storage


def opened(storage) -> lake.Table:
    table = catalog_in(storage).table("shop.orders")
    object.__setattr__(table._handle, "environment", simulated(len(storage.files()) + 1))
    return table


def work(storage, acknowledged):
    """A commit, an overwrite, a tag and an expiry."""
    table = opened(storage)
    table.write(pa.table({"id": [1]}))
    table.tags.create("two", exist_ok=True)
    table.write(pa.table({"id": [2]}), overwrite="table")
    table.expire_snapshots(retain_max=1, retain_min=1)
    acknowledged.append("done")


def test_readers_see_a_state_of_the_table_and_the_next_publication_mends_it():
    faults = every_fault(work, start=start(), seed=SEED)
    for trial in sample(faults, 10, kind=lambda each: each.call.operation):
        storage = trial.run().reopened()
        table = opened(storage)
        try:
            assert seen(table) in ([{"id": 0}], [{"id": 0}, {"id": 1}], [{"id": 2}])
            lake.publish_table(table)
            check(table, storage)
            table.write(pa.table({"id": [3]}))
            check(table, storage)
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"in {trial}\n{trial.storage.trace()}")
            raise


def check(table: lake.Table, storage) -> None:
    """The newest metadata shows the table, and every file of every snapshot and tag is there."""
    shown = iceberg(table)
    assert seen(table) == content(table.scan().to_arrow())
    for snapshot in shown.snapshots():
        assert shown.scan(snapshot=snapshot.id).to_arrow().num_rows
    newest = table.latest_snapshot()
    assert newest is not None
    found = PublishedVersions(storage, ROOT).newest()
    assert found is not None
    assert found.metadata.current_snapshot_id == newest.id
