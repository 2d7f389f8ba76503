"""A published table with deletion vectors dies at every storage call: readers see a whole state."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.testing import CrashableStorage, every_fault
from tests.crash.simulated import simulated
from tests.sampling import SEED, sample
from tests.unit.publish.published import catalog_in, content, iceberg, published_table, seen

COLUMNS = [("id", "BIGINT")]
STATES = [[0, 1, 2, 3], [0, 2, 3], [0, 3], [0, 3, 4]]
"""The ids after each step of the work; the last step changes none."""


def start(version: str) -> CrashableStorage:
    storage = CrashableStorage()
    options = {"deletion-vectors.enabled": "true", "metadata.iceberg.format-version": version}
    table = published_table(storage, COLUMNS, options=options)
    table.write(pa.table({"id": [0, 1, 2, 3]}))
    return storage


def opened(storage: Any) -> lake.Table:
    table = catalog_in(storage).table("shop.orders")
    object.__setattr__(table._handle, "environment", simulated(len(storage.files()) + 1))
    return table


def work(storage: Any, acknowledged: list[str]) -> None:
    """Deletes, a tag, an append and an expiry."""
    table = opened(storage)
    table.delete("id = 1")
    table.tags.create("one", exist_ok=True)
    table.delete("id = 2")
    table.write(pa.table({"id": [4]}))
    table.expire_snapshots(retain_max=1, retain_min=1)
    acknowledged.append("done")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", ["2", "3"])
def test_readers_see_a_state_of_the_table_and_the_next_publication_mends_it(version):
    faults = every_fault(work, start=start(version), seed=SEED)
    for trial in sample(faults, 5, kind=lambda each: each.call.operation):
        storage = trial.run().reopened()
        table = opened(storage)
        try:
            assert [row["id"] for row in seen(table)] in STATES
            lake.publish_table(table)
            check(table)
            table.delete("id = 3")
            check(table)
        except (AssertionError, lake.LakeError) as error:
            error.add_note(f"in {trial}\n{trial.storage.trace()}")
            raise


def check(table: lake.Table) -> None:
    """The newest metadata shows the table, and each snapshot and tag has all of its files."""
    shown = iceberg(table)
    assert seen(table) == content(table.scan().to_arrow())
    for snapshot in shown.snapshots():
        rows = content(table.scan(**_as_named(table, snapshot.id)).to_arrow())
        assert content(shown.scan(snapshot=snapshot.id).to_arrow()) == rows


def _as_named(table: lake.Table, number: int) -> dict[str, Any]:
    """Name a snapshot of the table, or the tag that keeps it."""
    tags = {tag.snapshot_id: tag.name for tag in table.tags.list()}
    alive = {each.id for each in table.snapshots()}
    return {"snapshot": number} if number in alive else {"tag": tags[number]}
