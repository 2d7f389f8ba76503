"""An expiry that began before a batch keeps what the batch reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakeformat.mixed.expire import expire as expiries
from tests.unit.mixed.aged_table import COLUMNS, HOUR, AgedTable
from tests.unit.mixed.named_rows import NAMES, contents, names, new_catalog


@pytest.mark.parametrize("store", ["change", "base"])
def test_an_expiry_keeps_what_a_batch_reads_that_begins_after_its_plan(
    tmp_path: Path, monkeypatch: Any, store: str
):
    """The batch begins right before the commit of one store; then an optimizing is published."""
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"))
    aged.merge()
    aged.write((1, "x", "b"))
    aged.now += HOUR
    expire, begun = expiries.expire_snapshots, []

    def begin_first(handle: Any, *given: Any, **named: Any) -> Any:
        is_base = handle.pointer is aged.table._pair.base.pointer
        if is_base == (store == "base") and not begun:
            begun.append(aged.table.begin())
            aged.write((1, "x", "stream"))
            begun[0]._begun.lease._write(aged.now + 2 * HOUR)
            aged.merge()
            aged.now += HOUR
        return expire(handle, *given, **named)

    monkeypatch.setattr(expiries, "expire_snapshots", begin_first)
    report = aged.table.expire_snapshots(older_than="1 s")
    with begun[0] as batch:
        assert batch.scan().to_arrow().to_pylist() == [{"k": 1, "p": "x", "v": "b"}]
        batch.write(pa.table([[2], ["x"], ["batch"]], schema=COLUMNS))
    assert report.needed
    assert aged.rows() == [(1, "x", "stream"), (2, "x", "batch")]


def test_a_batch_may_run_longer_than_changes_are_kept(tmp_path):
    """Its lease is renewed, so it is not dead."""
    kept = {"change.data.ttl.minutes": "0"}
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", NAMES, format="mixed", primary_key=["id"], options=kept)
    table.write(names(_1="a", _2="b"))
    with table.begin() as batch:
        table.write(names(_1="stream"))
        report = table.compact(strategy="full", executor="serial")
        assert f"wait for the batch with transaction {batch.transaction}" in report.sentence
        table.expire_snapshots()
        assert contents(batch) == {1: "a", 2: "b"}
        batch.write(names(_1="batch", _2="batch"))
    assert contents(table) == {1: "stream", 2: "batch"}
    assert "wait" not in table.compact(strategy="full", executor="serial").sentence
    table.expire_snapshots()
    assert contents(table.base) == {1: "stream", 2: "batch"}


def test_an_optimizer_whose_clock_is_behind_hides_nothing_that_a_batch_reads(tmp_path: Path):
    """By the times of the snapshots, the optimizing came before the batch began."""
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"))
    aged.merge()
    aged.now += 20 * HOUR
    aged.write((1, "x", "b"))
    with aged.table.begin() as batch:
        aged.now -= 30_000
        aged.merge()
        aged.now += HOUR
        batch._begun.lease._write(aged.now + HOUR)
        aged.table.expire_snapshots()
        assert batch.scan().to_arrow().to_pylist() == [{"k": 1, "p": "x", "v": "b"}]
