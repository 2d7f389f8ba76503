"""The cost of an expiry: storage calls grow with the deleted files, not with the kept ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lakeformat import set_option
from lakeformat.paimon.deletion import protection
from lakeformat.paimon.expire import expire_snapshots
from tests.counting import CountingStorage
from tests.keyed_rows import KeyedRows


def calls(snapshots: int, going: int) -> Counter[str]:
    """The calls of an expiry of some snapshots, each of which has replaced the one before."""
    rows = KeyedRows(
        {"file-operation.thread-num": "1", "manifest.merge-min-count": "5"}, keyed=False
    )
    for number in range(snapshots):
        rows.commit(("+I", number, "x"))
        rows.table.truncate()
    storage = CountingStorage(rows.table._handle.storage)
    handle = replace(rows.table._handle, storage=storage)
    report = expire_snapshots(handle, retain_max=1, retain_min=1, limit=going)
    assert len(report.snapshots) == going
    return Counter(operation for operation, _ in storage.calls)


def test_as_many_more_snapshots_that_stay_cost_no_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protection, "LATER_SNAPSHOTS", 5)
    few, many = calls(15, 10), calls(45, 10)
    assert few["delete"] == many["delete"]
    assert many.total() <= few.total() + 10


def test_what_goes_costs_a_few_calls_for_each_snapshot(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protection, "LATER_SNAPSHOTS", 5)
    few, many = calls(30, 10), calls(30, 20)
    assert many.total() / few.total() < 2.2
    assert few.total() / 10 < 25


def calls_for_changelogs(kept: int, going: int, producer: str) -> Counter[str]:
    """The calls of an expiry of changelogs alone, all of which have outlived their snapshots."""
    rows = KeyedRows(
        {
            "file-operation.thread-num": "1",
            "changelog-producer": producer,
            "changelog.num-retained.min": "1000",
            "changelog.num-retained.max": "2000",
        },
        keyed=producer != "none",
    )
    for number in range(kept + going + 1):
        is_last = number % 2 == 1 and producer == "none"  # files are candidates once deleted
        if is_last:
            rows.table.truncate()
        else:
            rows.commit(("+I", number, "x"))
    expire_snapshots(rows.table._handle, retain_max=1, retain_min=1, limit=kept + going)
    rows.catalog.alter_table(
        "shop.t",
        set_option("changelog.num-retained.min", str(kept + 1)),
        set_option("changelog.num-retained.max", str(kept + 1)),
        set_option("snapshot.num-retained.min", "1"),
        set_option("snapshot.num-retained.max", "1"),
    )
    table = rows.catalog.table("shop.t")
    storage = CountingStorage(table._handle.storage)
    report = expire_snapshots(replace(table._handle, storage=storage))
    assert len(report.changelogs) == going
    return Counter(operation for operation, _ in storage.calls)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("producer", ["input", "none"])
def test_as_many_more_changelogs_that_stay_cost_no_call(producer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protection, "LATER_SNAPSHOTS", 5)
    few, many = calls_for_changelogs(10, 5, producer), calls_for_changelogs(30, 5, producer)
    assert few["delete"] == many["delete"]
    assert many.total() <= few.total() + 10
