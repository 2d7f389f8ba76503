"""An expired snapshot frees its number: a commit that slept until then loses nothing."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.table import load_table
from lakeformat.storage import MemoryStorage
from tests.crash.interrupted import Interrupted
from tests.crash.simulated import simulated
from tests.sampling import IS_WHOLE, sampled_moments

LAYOUT = TableLayout("wh/shop.db/orders")
NIGHTLY = lake.CommitId("nightly", 1)
_names = itertools.count(1)


def new_storage(options: dict) -> MemoryStorage:
    storage = MemoryStorage(f"expired-numbers-{next(_names)}")
    catalog = FileSystemCatalog(storage, "wh", simulated())
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT"), ("n", "BIGINT")], **options)
    write(storage, 0)
    return storage


def opened(storage) -> lake.Table:
    return load_table(storage, LAYOUT, simulated(next(_names)))


def write(storage, number: int, commit: lake.CommitId | None = None) -> lake.CommitReport:
    return opened(storage).write(pa.table({"id": [number], "n": [number]}), commit=commit)


def two_commits_and_an_expiry(storage) -> None:
    """The number after the one that was read was taken, and nothing is left of that."""
    write(storage, 10)
    write(storage, 11)
    opened(storage).expire_snapshots(retain_max=1, retain_min=1)


@pytest.mark.parametrize(
    "options",
    [{"options": {"bucket": "-1"}}, {"primary_key": ["id"], "options": {"bucket": "1"}}],
    ids=["append", "keyed"],
)
def test_a_commit_that_slept_at_any_call_is_in_the_table_once(options):
    watched = Interrupted(new_storage(options), 0, lambda: None)
    write(watched, 1)
    met = 0
    moments = sampled_moments(watched.calls)
    for moment in moments:
        storage = new_storage(options)
        slept = Interrupted(storage, moment, lambda it=storage: two_commits_and_an_expiry(it))
        report = write(slept, 1, NIGHTLY)
        rows = opened(storage).scan().to_arrow().column("id").to_pylist()
        assert sorted(rows) == [0, 1, 10, 11], f"at {watched.calls[moment - 1]}"
        there = {snapshot.id for snapshot in opened(storage).snapshots()}
        met += report.snapshot_id in there
        assert write(storage, 1, NIGHTLY).snapshot_id == report.snapshot_id
    assert met > (len(moments) // 2 if IS_WHOLE else 0), "it was the last one nearly everywhere"
