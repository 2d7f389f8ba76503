"""What an expiry costs: storage calls grow with what goes, not with what stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lakeformat.clean import protection
from lakeformat.expire import expire_snapshots
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
    monkeypatch.setattr(protection, "LATER_SNAPSHOTS", 10)
    few, many = calls(30, 20), calls(90, 20)
    assert few["delete"] == many["delete"]
    assert many.total() <= few.total() + 10


def test_what_goes_costs_a_few_calls_for_each_snapshot(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protection, "LATER_SNAPSHOTS", 10)
    few, many = calls(60, 20), calls(60, 40)
    assert many.total() / few.total() < 2.2
    assert few.total() / 20 < 25
