"""System tables: the metadata of a table written here, as rows."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.consumer import Consumer, write_consumer
from lakeformat.paimon.metadata.tag import Tag, create_tag
from lakeformat.paimon.system_tables import system_table_names
from lakeformat.storage import open_storage
from lakeformat.types.duration_text import java_duration
from lakeformat.types.type_text import parse_type
from lakeformat.types.value_text import internal_text, join_texts

_warehouses = itertools.count()
SPECIFIED = {
    "snapshots": 16,
    "schemas": 7,
    "options": 2,
    "manifests": 9,
    "files": 20,
    "partitions": 12,
    "buckets": 6,
    "tags": 7,
    "branches": 2,
    "consumers": 2,
    "statistics": 5,
    "table_indexes": 11,
    "aggregation_fields": 5,
}


@pytest.fixture
def catalog() -> lake.Catalog:
    """A table with two commits under two schemas."""
    catalog = lake.open_catalog(f"memory://system-{next(_warehouses)}/wh")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")], options={"bucket": "-1"})
    orders.write(pa.table({"id": [1, 2]}), commit=lake.CommitId("demo", 1))
    altered = catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    altered.write(pa.table({"id": [3], "note": ["x"]}), commit=lake.CommitId("demo", 2))
    return catalog


def rows(catalog: lake.Catalog, name: str, **more) -> list[dict]:
    return catalog.table(f"shop.orders${name}").scan(**more).to_arrow().to_pylist()


def place(catalog: lake.Catalog) -> tuple:
    storage, root = open_storage(catalog.table("shop.orders").location)
    return storage, TableLayout(root)


@pytest.mark.parametrize("name", system_table_names())
def test_every_system_table_has_the_columns_of_the_format(catalog, name):
    table = catalog.table(f"shop.orders${name}")
    scan = table.scan()
    assert len(table.schema.fields) == SPECIFIED[name]
    assert scan.schema == table.schema.arrow_schema()
    found = scan.to_arrow()
    assert found.schema == scan.schema
    assert scan.count() == found.num_rows
    for field in scan.schema:
        assert field.nullable or not found[field.name].null_count
    assert sum(batch.num_rows for batch in scan.to_batches()) == found.num_rows
    assert list(scan.to_pandas().columns) == table.schema.column_names


def test_all_system_tables_of_the_specification_are_there(catalog):
    assert SPECIFIED.keys() == set(catalog.table("shop.orders").system_tables)


def test_snapshots_are_shown_oldest_first(catalog):
    first, second = rows(catalog, "snapshots")
    assert (first["snapshot_id"], second["snapshot_id"]) == (1, 2)
    assert (second["commit_user"], second["commit_identifier"]) == ("demo", 2)
    assert (second["total_record_count"], second["delta_record_count"]) == (3, 1)
    millis = catalog.table("shop.orders").latest_snapshot().time_millis
    in_utc = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=millis)
    assert second["commit_time"] == in_utc.replace(tzinfo=None)


def test_schemas_and_options_are_json_and_text(catalog):
    old, new = rows(catalog, "schemas")
    assert json.loads(old["fields"]) == [{"id": 0, "name": "id", "type": "BIGINT"}]
    assert [field["name"] for field in json.loads(new["fields"])] == ["id", "note"]
    assert (new["primary_keys"], json.loads(new["options"])) == ("[]", {"bucket": "-1"})
    assert rows(catalog, "options") == [{"key": "bucket", "value": "-1"}]


def test_files_are_shown_with_the_columns_the_table_has_now(catalog):
    first, second = rows(catalog, "files")
    assert (first["record_count"], second["record_count"]) == (2, 1)
    assert (first["schema_id"], second["schema_id"]) == (0, 1)
    assert (first["partition"], first["min_key"], first["file_source"]) == ("{}", None, "APPEND")
    assert "note=2}" in first["null_value_counts"]
    storage, path = open_storage(first["file_path"])
    assert len(storage.read(path)) == first["file_size_in_bytes"]


def test_a_file_on_disk_is_shown_with_its_plain_path(tmp_path):
    catalog = lake.open_catalog(str(tmp_path / "a b%20ü"))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    [file] = rows(catalog, "files")
    assert Path(file["file_path"]).stat().st_size == file["file_size_in_bytes"]


def test_an_older_snapshot_has_its_own_files_under_its_own_schema(catalog):
    [file] = rows(catalog, "files", snapshot=1)
    assert "note" not in file["min_value_stats"]
    storage, layout = place(catalog)
    create_tag(storage, layout, Tag("v1", catalog.table("shop.orders").snapshots()[0]))
    assert rows(catalog, "files", tag="v1") == [file]
    assert rows(catalog, "manifests", tag="v1") == rows(catalog, "manifests")[:1]
    assert rows(catalog, "partitions", tag="v1")[0]["record_count"] == 2


def test_partitions_and_buckets_sum_files_up(catalog):
    [partition] = rows(catalog, "partitions")
    [bucket] = rows(catalog, "buckets")
    size = sum(file["file_size_in_bytes"] for file in rows(catalog, "files"))
    for group, shown in ((partition, ""), (bucket, "{}")):
        assert group["partition"] == shown
        assert (group["record_count"], group["file_count"]) == (3, 2)
        assert group["file_size_in_bytes"] == size
    assert (partition["done"], partition["deleted_record_count"]) == (False, 0)


def test_tags_and_consumers_are_shown(catalog):
    storage, layout = place(catalog)
    [snapshot, _] = catalog.table("shop.orders").snapshots()
    moment = datetime(2024, 1, 31, 12, 0, 0, 500_000)
    create_tag(storage, layout, Tag("v1", snapshot, moment, timedelta(hours=24)))
    write_consumer(storage, layout, Consumer("me", 2))
    [tag] = rows(catalog, "tags")
    assert (tag["tag_name"], tag["record_count"]) == ("v1", 2)
    assert (tag["create_time"], tag["time_retained"]) == (moment, "PT24H")
    assert rows(catalog, "consumers") == [{"consumer_id": "me", "next_snapshot_id": 2}]


def test_a_table_without_snapshot_has_system_tables_all_the_same(catalog):
    catalog.create_table("shop.empty", [("id", "BIGINT")])
    for name in system_table_names():
        expected = 1 if name in ("schemas", "aggregation_fields") else 0
        assert catalog.table(f"shop.empty${name}").scan().to_arrow().num_rows == expected


def test_only_columns_that_are_asked_for_are_filled(catalog):
    table = catalog.table("shop.orders$files").scan(columns=["level", "bucket"]).to_arrow()
    assert table.to_pydict() == {"level": [0, 0], "bucket": [0, 0]}
    with pytest.raises(lake.InvalidRequestError, match=r"columns of \$files must name some of"):
        catalog.table("shop.orders$files").scan(columns=["nix"])


def test_names_are_found_in_any_case(catalog):
    assert rows(catalog, "SNAPSHOTS") == rows(catalog, "snapshots")


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("nix", lake.InvalidRequestError, r"no system table \$nix; the system tables are \$snap"),
        ("row_tracking", lake.UnsupportedError, r"this version has no system table \$row_trac"),
        ("files$snapshots", lake.InvalidRequestError, "is not a table"),
    ],
)
def test_a_name_nobody_knows_is_refused_with_the_list(catalog, name, error, reason):
    with pytest.raises(error, match=reason):
        catalog.table(f"shop.orders${name}")


def test_a_system_table_can_only_be_read(catalog):
    files = catalog.table("shop.orders$files")
    for attempt in (
        lambda: files.write(pa.table({"id": [1]})),
        files.new_writer,
        lambda: files.commit([]),
        lambda: files.tags,
        lambda: files.changes(after=1),
        files.state_scan,
        files.expire_snapshots,
    ):
        with pytest.raises(lake.UnsupportedError, match=r"\$files .* is read-only"):
            attempt()
    with pytest.raises(lake.InvalidRequestError, match="is a system table"):
        catalog.alter_table("shop.orders$files", lake.add_column("a", "INT"))


def test_what_shows_the_present_takes_no_snapshot(catalog):
    with pytest.raises(lake.InvalidRequestError, match="shows the current state only"):
        rows(catalog, "tags", snapshot=1)
    with pytest.raises(lake.InvalidRequestError, match="pass only one of snapshot=1, tag='v1'"):
        rows(catalog, "files", snapshot=1, tag="v1")


@pytest.mark.parametrize(
    ("type_text", "value", "text"),
    [
        ("DATE", 19000, "19000"),
        ("TIME(3)", 3_723_004, "3723004"),
        ("TIMESTAMP(6)", 1_700_000_000_123_456_000, "2023-11-14T22:13:20.123456"),
        ("TIMESTAMP(3)", 1_704_067_200_000_000_000, "2024-01-01T00:00"),
        ("TIMESTAMP(3)", -1_500_000_000, "1969-12-31T23:59:58.500"),
        ("DOUBLE", 1e10, "1.0E10"),
        ("FLOAT", 0.5, "0.5"),
        ("BOOLEAN", True, "true"),
        ("STRING", "a, b", "a, b"),
        ("BYTES", b"\x01\xff", "01ff"),
        ("INT", None, None),
        ("DOUBLE", None, None),
    ],
)
def test_values_are_printed_as_java_prints_what_a_row_holds(type_text, value, text):
    from lakeformat.paimon.binary_row import FramedRows

    data_type = parse_type(type_text)
    framed = pa.array([frame_row(encode_row([value], [data_type]), 1)], pa.binary())
    column = FramedRows(framed, [data_type]).column(0)
    assert internal_text(column, data_type).to_pylist() == [text]


def test_a_row_without_fields_is_a_pair_of_braces():
    assert join_texts([], rows=2, brackets="{}").to_pylist() == ["{}", "{}"]
    parts = [pa.array(["a", None]), pa.array(["1", "2"])]
    assert join_texts(parts, rows=2, brackets="[]").to_pylist() == ["[a, 1]", "[null, 2]"]


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(days=1), "PT24H"),
        (timedelta(0), "PT0S"),
        (timedelta(minutes=1, seconds=30.5), "PT1M30.5S"),
        (timedelta(hours=-1), "PT-1H"),
    ],
)
def test_durations_are_printed_as_java_prints_them(duration, text):
    assert java_duration(duration) == text
