"""A retry knows if its first attempt has published, also if an expiry ran in between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from tests.unit.mixed.aged_table import COLUMNS, HOUR, AgedTable


def write_batch(table: Any, number: int, value: str = "new", **how: Any) -> bool:
    """Write one row as a batch of a stream, unless it is published; return False then."""
    with table.stream_batch(lake.CommitId("feed", number)) as commit:
        if commit is not None:
            table.write(pa.table([[number], ["x"], [value]], schema=COLUMNS), commit=commit, **how)
        return commit is not None


def test_a_retry_after_an_expiry_is_decided_by_the_head_of_its_first_attempt(tmp_path: Path):
    """The head has the ids of both stores; its base snapshot itself may have expired."""
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"), (2, "x", "a"))
    aged.merge()
    aged.now += 24 * HOUR
    head = aged.table.latest_snapshot()
    assert head is not None
    began = lake.CommitId("run", 1, first_try_millis=aged.now, first_try_head=head.identity)
    aged.write((3, "x", "stream"))
    aged.merge()
    old = "12h"
    aged.table.expire_snapshots(older_than=old)
    assert head.id not in [each.id for each in aged.table.snapshots()]
    with pytest.raises(lake.CommitUndecidableError, match=r"Mixed table 'change\.data\.ttl\.min"):
        aged.table.delete("k = 1", commit=replace(began, first_try_head=None))
    assert not aged.table.delete("k = 1", commit=began).replayed
    assert aged.table.delete("k = 1", commit=began).replayed
    assert aged.rows() == [(2, "x", "a"), (3, "x", "stream")]


@pytest.mark.parametrize("crashes", [False, True])
def test_batches_of_streams_go_on_right_after_a_maintenance(tmp_path, crashes):
    """The base store has then only one snapshot, whose time is near the one of the batch."""
    aged = AgedTable(tmp_path)
    for number in (1, 2):
        aged.now += 24 * HOUR
        assert write_batch(aged.table, number)
        aged.merge()
        aged.table.expire_snapshots()
    [only] = aged.table.base.snapshots()
    assert only.snapshot.parent_id is not None
    if crashes:
        aged.table.stream_batch(lake.CommitId("feed", 3)).__enter__()
        aged.now += HOUR
    assert write_batch(aged.table, 3)
    assert not write_batch(aged.table, 3)
    assert aged.table.change.consumers.list() == []
    assert [key for key, *_ in aged.rows()] == [1, 2, 3]


@pytest.mark.parametrize("how", ["adopted again", "empty note"])
def test_a_batch_after_the_adoption_is_not_published_again(tmp_path, how):
    """The note of the earlier batch, from before the adoption, does not decide about it."""
    now = 1_700_000_000_000
    world = Environment(now_millis=lambda: now)
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", environment=world)
    catalog.create_database("db")
    write_batch(catalog.create_table("db.t", COLUMNS), 7)
    now += HOUR
    catalog.adopt_table("db.t", primary_key=["k"])
    # A detach drops the change store, so a batch is found after it only if it is an overwrite.
    batch = {"overwrite": "table"} if how == "adopted again" else {}
    write_batch(catalog.table("db.t"), 8, **batch)
    now += HOUR
    if how == "adopted again":
        catalog.detach_table("db.t", merge=True)
        catalog.adopt_table("db.t", primary_key=["k"])
    else:
        [note] = (tmp_path / "db" / "t_change_" / "_lake").rglob("stream-feed")
        note.write_text("")  # a crash can leave it empty
    now += HOUR
    mixed: Any = catalog.table("db.t")
    mixed.write(pa.table([[8], ["x"], ["newer"]], schema=COLUMNS), kinds=["+U"])
    now += HOUR
    assert not write_batch(mixed, 8, "repeated", **batch)
    assert "repeated" not in mixed.scan().to_arrow()["v"].to_pylist()


@pytest.mark.parametrize("crashes", [False, True])
def test_a_batch_from_before_the_adoption_is_not_published_again(tmp_path, crashes):
    now = 1_700_000_000_000
    world = Environment(now_millis=lambda: now)
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", environment=world)
    catalog.create_database("db")
    table: Any = catalog.create_table("db.t", COLUMNS)
    run = lake.RunRecord(user="dag/run", identifier=4, snapshot_id=1)
    table.record_run(run)
    if crashes:
        commit = table.stream_batch(lake.CommitId("feed", 7)).__enter__()
        table.write(pa.table([[7], ["x"], ["new"]], schema=COLUMNS), commit=commit)
        table.consumers.clear()  # an adoption is refused while the batch keeps a consumer
    else:
        write_batch(table, 7)
        now += HOUR
        table.write(pa.table([[1], ["x"], ["a"]], schema=COLUMNS))
        table.expire_snapshots(older_than="1 ms", retain_min=1)
    now += HOUR
    catalog.adopt_table("db.t", primary_key=["k"])
    now += HOUR
    mixed: Any = catalog.table("db.t")
    assert not write_batch(mixed, 7, "repeated")
    assert write_batch(mixed, 8)
    assert not write_batch(mixed, 8, "repeated")
    assert set(mixed.scan().to_arrow()["v"].to_pylist()) <= {"new", "a"}
    assert mixed.find_run("dag/run") == run
    newer = replace(run, identifier=5)
    mixed.record_run(newer)
    assert mixed.find_run("dag/run") == newer
    assert mixed.find_run("dag/other") is None
