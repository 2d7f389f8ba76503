"""Options of a table that name the state its scans show, as Java follows them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM

NOON = 1_767_268_800_000
"""2026-01-01 12:00 in UTC."""
HOUR = 3_600_000


class Warehouse:
    """A table of three snapshots, an hour apart: rows 1, rows 1 and 2, rows 1 to 3."""

    def __init__(self, path: Path) -> None:
        self.now = NOON
        environment = replace(SYSTEM, now_millis=lambda: self.now)
        self.catalog = lake.open_catalog(str(path), environment=environment)
        self.catalog.create_database("shop")
        table = self.catalog.create_table("shop.orders", [("id", "BIGINT")])
        for number in (1, 2, 3):
            table.write(pa.table({"id": [number]}), watermark=number * 10)
            self.now += HOUR

    def with_options(self, **options: str) -> lake.Table:
        """The table, which sets options from now on."""
        changes = [
            lake.set_option(key.replace("__", ".").replace("_", "-"), value)
            for key, value in options.items()
        ]
        self.catalog.alter_table("shop.orders", *changes)
        return self.catalog.table("shop.orders")


@pytest.fixture
def shop(tmp_path) -> Warehouse:
    return Warehouse(tmp_path)


def ids(scan: lake.Scan) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())


def local_text(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000).isoformat(" ")  # noqa: DTZ006 - as Java reads it


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"scan__snapshot_id": "2"}, [1, 2]),
        ({"scan__timestamp_millis": str(NOON)}, [1]),
        ({"log__scan__timestamp_millis": str(NOON)}, [1]),
        ({"scan__timestamp": local_text(NOON + HOUR)}, [1, 2]),
        ({"scan__watermark": "15"}, [1, 2]),
        ({"scan__version": "1"}, [1]),
        ({"scan__version": "watermark-11"}, [1, 2]),
        ({"scan__mode": "from-snapshot", "scan__snapshot_id": "1"}, [1]),
        ({"scan__mode": "from-snapshot-full", "scan__snapshot_id": "1"}, [1]),
        ({"scan__mode": "from-timestamp", "scan__timestamp_millis": str(NOON)}, [1]),
        ({"scan__mode": "latest"}, [1, 2, 3]),
        ({"scan__mode": "latest-full"}, [1, 2, 3]),
        ({"scan__mode": "FULL"}, [1, 2, 3]),
        ({"log__scan": "latest"}, [1, 2, 3]),
        ({"scan__mode": "compacted-full"}, [1, 2, 3]),
        ({"scan__file_creation_time_millis": str(NOON + HOUR)}, [2, 3]),
        ({"scan__creation_time_millis": str(NOON + 1)}, [1, 2]),
        ({"scan__creation_time_millis": str(NOON - HOUR)}, [1, 2, 3]),
        ({"scan__creation_time_millis": str(NOON + 9 * HOUR)}, []),
    ],
)
def test_a_scan_shows_the_state_that_the_options_name(shop, options, shown):
    scan = shop.with_options(**options).scan()
    assert ids(scan) == shown
    assert scan.count() == len(shown)


def test_a_tag_is_shown_and_comes_before_a_snapshot_of_the_same_version(shop):
    shop.catalog.table("shop.orders").tags.create("1", snapshot=2)
    assert ids(shop.with_options(scan__tag_name="1").scan()) == [1, 2]
    shop.catalog.alter_table("shop.orders", lake.remove_option("scan.tag-name"))
    assert ids(shop.with_options(scan__version="1").scan()) == [1, 2]


def test_the_newest_compaction_is_shown_without_what_came_after_it(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL")],
        primary_key=["id"],
        options={"bucket": "1", "scan.mode": "compacted-full"},
    )
    table.write(pa.table({"id": [1]}))
    table.write(pa.table({"id": [2]}))
    table.compact()
    table.write(pa.table({"id": [3]}))
    assert ids(table.scan()) == [1, 2]
    assert ids(table.scan(newest=True)) == [1, 2, 3]


def test_what_the_call_names_wins(shop):
    table = shop.with_options(scan__snapshot_id="2")
    assert ids(table.scan(snapshot=1)) == [1]
    assert ids(table.scan(as_of=NOON)) == [1]
    assert ids(table.scan(newest=True)) == [1, 2, 3]
    for scan in (table.scan, table.system_table("files").scan):
        with pytest.raises(lake.InvalidRequestError, match="only one of snapshot=1, newest=True"):
            scan(snapshot=1, newest=True)


def test_the_plan_says_which_option_decided(shop):
    table = shop.with_options(scan__snapshot_id="2")
    plan = table.scan().explain()
    assert plan.to_dict()["decided_by"] == "'scan.snapshot-id' = '2'"
    assert "snapshot 2 (the table sets 'scan.snapshot-id' = '2')" in str(plan)
    assert table.scan(newest=True).explain().decided_by is None


def test_the_columns_are_those_of_the_snapshot(shop):
    table = shop.with_options(scan__snapshot_id="2")
    shop.catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    table = shop.catalog.table("shop.orders")
    assert table.scan().schema.names == ["id"]
    assert table.scan(newest=True).schema.names == ["id", "note"]


def test_upkeep_and_row_changes_work_on_the_newest_state(shop):
    table = shop.with_options(scan__snapshot_id="1")
    assert table.delete("id = 3").rows == 1
    assert table.update("id = 2", {"id": "20"}).rows == 1
    table.compact()
    table.analyze()
    assert ids(table.scan(newest=True)) == [1, 20]
    assert ids(table.scan()) == [1], "readers still see what the option names"
    assert table.health().to_dict()["snapshot_id"] == table.latest_snapshot().id
    table.expire_snapshots(retain_min=1, retain_max=1, older_than="0 ms")
    with pytest.raises(
        lake.NotFoundError,
        match=r"snapshot 1 of .*The table option 'scan.snapshot-id' = '1' chose this snapshot",
    ):
        table.scan()


def test_a_value_that_names_no_state_stops_scans_and_no_upkeep(shop, tmp_path):
    path = tmp_path / "shop.db/orders/schema/schema-0"
    schema = json.loads(path.read_bytes())
    path.write_text(json.dumps({**schema, "options": {"scan.snapshot-id": "-4"}}))
    table = shop.catalog.table("shop.orders")
    with pytest.raises(lake.InvalidRequestError, match=r"'scan\.snapshot-id' is '-4'"):
        table.scan()
    table.write(pa.table({"id": [4]}))
    table.compact()
    assert table.delete("id = 3").rows == 1
    assert ids(table.scan(newest=True)) == [1, 2, 4]


def test_metadata_of_a_snapshot_follows_the_options_too(shop):
    table = shop.with_options(scan__snapshot_id="2")
    files = table.system_table("files")
    assert files.scan().to_arrow().num_rows == 2
    assert files.scan(newest=True).to_arrow().num_rows == 3
    assert table.system_table("snapshots").scan().to_arrow().num_rows == 3
    assert table.system_table("audit_log").scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("key", ["incremental_between", "incremental_between_timestamp"])
def test_a_table_of_changes_is_not_read_as_rows(shop, key):
    table = shop.with_options(**{key: "1,3"})
    with pytest.raises(lake.UnsupportedError, match=r"table\.changes\(\)"):
        table.scan()
    assert ids(table.scan(snapshot=2)) == [1, 2]
    assert table.changes(after=1).to_arrow().num_rows == 2
    assert table.write(pa.table({"id": [4]})).snapshot_id is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scan__snapshot_id": "1", "scan__tag_name": "a"}, "'scan.snapshot-id' and 'scan.tag-"),
        (
            {"scan__mode": "latest", "scan__snapshot_id": "1"},
            "'latest', which cannot be combined with",
        ),
        (
            {"scan__mode": "from-snapshot"},
            "which needs 'scan.snapshot-id' or 'scan.tag-name' .*: set one, or remove",
        ),
        ({"scan__snapshot_id": "one"}, "'scan.snapshot-id' is 'one'"),
        ({"scan__mode": "sideways"}, "'scan.mode' is 'sideways'"),
    ],
)
def test_options_that_contradict_each_other_are_refused_before_they_are_set(shop, options, message):
    with pytest.raises(lake.InvalidRequestError, match=message):
        shop.with_options(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scan__snapshot_id": "9"}, "snapshot 9 of .* correct or remove the option"),
        ({"scan__tag_name": "gone"}, "gone.* correct or remove the option"),
        ({"scan__version": "gone"}, "no tag 'gone', and 'gone' is not a snapshot number"),
        ({"scan__timestamp_millis": "5"}, "no snapshot from 1970.* 'scan.timestamp-millis' = '5'"),
        ({"scan__watermark": "99"}, "no snapshot with watermark 99"),
    ],
)
def test_a_state_that_is_not_there_is_an_error_that_names_the_option(shop, options, message):
    table = shop.with_options(**options)
    with pytest.raises(lake.NotFoundError, match=message):
        table.scan()


def test_a_time_that_is_none_is_named(shop):
    table = shop.with_options(scan__timestamp="yesterday")
    with pytest.raises(
        lake.InvalidRequestError, match=r"'scan.timestamp' = 'yesterday' is not a time such as"
    ):
        table.scan()


def test_rows_seen_otherwise_are_refused_where_files_would_be_left_out(shop):
    table = shop.with_options(scan__file_creation_time_millis=str(NOON + HOUR))
    with pytest.raises(lake.UnsupportedError, match=r"\$audit_log needs all files"):
        table.system_table("audit_log").scan()
    assert table.system_table("audit_log").scan(newest=True).to_arrow().num_rows == 3
