"""The record of merged changes must fit the change store, or later writes would be lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake

_WRITES = 10


def row(number: int) -> pa.Table:
    return pa.table({"id": [number], "v": ["a"]})


@pytest.fixture
def table(tmp_path: Path) -> lake.MixedTable:
    """A table whose base store has merged all its changes, up to the sequence number 10."""
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    columns = [("id", "BIGINT"), ("v", "STRING")]
    table = catalog.create_table("db.t", columns, format="mixed", primary_key=["id"])
    shutil.copytree(tmp_path / "db/t_change_", tmp_path / "backup")
    for number in range(_WRITES):
        table.write(row(number))
    table.compact(strategy="full")
    return table


def require_refused(table: lake.MixedTable, number: int, newest: int) -> None:
    found = rf"up to sequence number {number} are merged, but the numbers .* are from 0 to {newest}"
    before = [each.id for each in table.change.snapshots()]
    ways = (
        lambda: table.scan(),
        lambda: table.scan(as_of=table.latest_snapshot().time_millis),
        lambda: table.write(row(77)),
        lambda: table.upsert(row(77)),
        lambda: table.compact(),
        lambda: table.plan_optimizing(),
    )
    for way in ways:
        with pytest.raises(lake.CorruptTableError, match=found) as refused:
            way()
        assert "Restore both stores from backups of the same time" in str(refused.value)
    assert [each.id for each in table.change.snapshots()] == before
    assert table.base.scan().count() == _WRITES


def test_a_change_store_from_an_older_backup_is_refused_before_a_write_is_lost(table, tmp_path):
    shutil.rmtree(tmp_path / "db/t_change_")
    shutil.move(tmp_path / "backup", tmp_path / "db/t_change_")
    again = lake.open_catalog(str(tmp_path), format="iceberg").table("db.t")
    require_refused(again, _WRITES, 0)


def test_a_negative_record_is_refused(table, tmp_path):
    [record] = (tmp_path / "db/t/data/puffin").iterdir()
    content = record.read_bytes()
    assert content.count(b'{"":10}') == 1
    record.write_bytes(content.replace(b'{"":10}', b'{"":-5}'))
    require_refused(lake.open_table(str(tmp_path / "db/t")), -5, _WRITES)
