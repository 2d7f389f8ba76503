"""ORC files of a JVM outside UTC: both read the same instants, before and after a compaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.java.peer_process import JavaPeer, running_java
from tests.java.wire import assert_same, json_rows

ZONES = ("Asia/Shanghai", "America/New_York")
INSTANT = ("at", "TIMESTAMP(3) WITH LOCAL TIME ZONE")
KEY = ("id", "INT NOT NULL")
SUMMER = datetime(2024, 7, 3, 9, 46, 40, 123_000, UTC)
MOMENTS = [SUMMER, SUMMER.replace(month=1), datetime(2024, 3, 10, 5, tzinfo=UTC)]
"""The last is a few hours before New York puts its clocks on."""


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def abroad(zone: str, java_start: dict[str, str], tmp_path: Path) -> Iterator[JavaPeer]:
    """A JVM in another zone on the same warehouse."""
    with running_java(**java_start, scratch=tmp_path, zone=zone) as process:
        yield JavaPeer(process, tmp_path / "warehouse")


def moments(table: lake.Table, *, later: timedelta = timedelta()) -> pa.Table:
    rows: dict[str, list[object]] = {
        "id": list(range(len(MOMENTS))),
        "at": [each + later for each in MOMENTS],
    }
    if "wall" in table.schema.column_names:
        rows["wall"] = [each.replace(tzinfo=None) for each in MOMENTS]
    return pa.table(rows, schema=table.schema.arrow_schema())


def assert_all_read(table: lake.Table, peer: JavaPeer, expected: pa.Table) -> None:
    found = peer.read("shop.t")
    assert_same(found.columns, found.rows, json_rows(expected))
    ours = table.scan().to_arrow()
    assert_same(found.columns, json_rows(ours), json_rows(expected))


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_a_zone_that_files_name_is_turned_around(
    catalog: lake.Catalog, abroad: JavaPeer, legacy: str
):
    options = {"bucket": "1", "file.format": "orc", "orc.timestamp-ltz.legacy.type": legacy}
    columns = [KEY, INSTANT, ("wall", "TIMESTAMP(3)")]
    table = catalog.create_table("shop.t", columns, primary_key=["id"], options=options)
    abroad.write("shop.t", moments(table))
    abroad.write("shop.t", moments(table, later=timedelta(hours=1)))
    expected = moments(table, later=timedelta(hours=1))
    assert_all_read(table, abroad, expected)
    table.compact(strategy="full")
    assert_all_read(table, abroad, expected)


def test_a_zone_that_files_do_not_name_is_said_by_the_table(
    catalog: lake.Catalog, abroad: JavaPeer, zone: str
):
    options = {"bucket": "1", "file.format": "orc"}
    table = catalog.create_table("shop.t", [KEY, INSTANT], primary_key=["id"], options=options)
    abroad.write("shop.t", moments(table))
    with pytest.raises(lake.UnsupportedError, match=r"hours from UTC.*lake.orc-writer-timezone"):
        table.scan().to_arrow()
    table = catalog.alter_table("shop.t", lake.set_option("lake.orc-writer-timezone", zone))
    assert_all_read(table, abroad, moments(table))
    table.write(moments(table, later=timedelta(hours=2)))
    assert_all_read(table, abroad, moments(table, later=timedelta(hours=2)))
    table.compact(strategy="full")
    assert_all_read(table, abroad, moments(table, later=timedelta(hours=2)))
