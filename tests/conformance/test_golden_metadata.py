"""Metadata of real tables of other writers: read whole, and shown by every system table.

The lines of the format's checklist (section 11) about schemas, snapshots, tags, branches,
consumers, changelogs and statistics each have a test here or in the unit test named beside it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.branch_directory import branches
from lakeformat.paimon.metadata.changelog_directory import (
    changelog_ids,
    read_changelog,
)
from lakeformat.paimon.metadata.consumer import read_consumers
from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.statistics import ColumnStatistics, TableStatistics, read_statistics
from lakeformat.paimon.metadata.tag import Tag, read_tag, read_tags
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.system_tables import system_table_names
from lakeformat.storage import open_storage
from tests.golden.tables import HOW_TO_UNSKIP, GoldenTable, golden_tables
from tests.golden.values import assert_same_rows, rows_of

TABLES = {table.name: table for table in golden_tables()}
needs_golden_tables = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)
pytestmark = needs_golden_tables


def each(tables: list[GoldenTable]) -> pytest.MarkDecorator:
    """One test per table."""
    params = [pytest.param(table, id=table.name) for table in tables]
    return pytest.mark.parametrize("golden", params or [pytest.param(None, id="none")])


EACH = each([*TABLES.values()])
EACH_APPEND = each([table for table in TABLES.values() if not table.expected["primary_keys"]])


def place(name: str) -> tuple:
    storage, root = open_storage(TABLES[name].location)
    return storage, TableLayout(root)


def system_rows(golden: GoldenTable, name: str, **more) -> list[dict]:
    return lake.open_table(golden.location).system_table(name).scan(**more).to_arrow().to_pylist()


@pytest.mark.sampled(200)
@EACH
@pytest.mark.parametrize("name", system_table_names())
def test_every_system_table_of_a_golden_table_can_be_read(golden: GoldenTable, name: str):
    scan = lake.open_table(golden.location).system_table(name).scan()
    found = scan.to_arrow()
    found.validate(full=True)
    assert found.schema == scan.schema
    assert scan.count() == found.num_rows


@EACH
def test_files_that_are_shown_exist_and_have_the_size_they_are_said_to_have(golden: GoldenTable):
    below = {str(path) for path in Path(golden.location).glob("**/bucket-*/*") if path.is_file()}
    for file in system_rows(golden, "files"):
        storage, path = open_storage(file["file_path"])
        assert path in below
        assert len(storage.read(path)) == file["file_size_in_bytes"]


@EACH
def test_rows_and_files_are_counted_alike_by_all_system_tables(golden: GoldenTable):
    files = system_rows(golden, "files")
    counts = {name: system_rows(golden, name) for name in ("partitions", "buckets")}
    for groups in counts.values():
        assert sum(group["file_count"] for group in groups) == len(files)
        rows = sum(file["record_count"] for file in files)
        assert sum(group["record_count"] for group in groups) == rows
    newest = system_rows(golden, "snapshots")[-1]
    assert newest["total_record_count"] == sum(file["record_count"] for file in files)


@EACH_APPEND
def test_an_append_table_has_as_many_rows_as_are_expected(golden: GoldenTable):
    groups = system_rows(golden, "partitions")
    live = sum(group["record_count"] - group["deleted_record_count"] for group in groups)
    assert live == golden.row_count


@EACH
def test_a_written_parquet_file_has_the_rows_it_is_said_to_have(golden: GoldenTable):
    for file in system_rows(golden, "files"):
        if file["file_format"] == "parquet":
            storage, path = open_storage(file["file_path"])
            with storage.open_input(path) as stream:
                assert pq.ParquetFile(stream).metadata.num_rows == file["record_count"]


@EACH
def test_schema_files_lead_back_to_themselves(golden: GoldenTable):
    storage, root = open_storage(golden.location)
    layout = TableLayout(root)
    for number in schema_ids(storage, layout):
        schema = read_schema(storage, layout, number)
        assert TableSchema.from_json(json.loads(schema.to_json())) == schema
        theirs = json.loads(storage.read(layout.schema(number)))
        ours = json.loads(schema.to_json())
        for key in ("version", "id", "highestFieldId", "partitionKeys", "primaryKeys", "options"):
            assert ours[key] == theirs[key]


@EACH
def test_snapshots_lose_nothing_when_they_are_written_again(golden: GoldenTable):
    for snapshot in lake.open_table(golden.location).snapshots():
        storage, root = open_storage(golden.location)
        theirs = json.loads(storage.read(TableLayout(root).snapshot(snapshot.id)))
        present = {key: value for key, value in theirs.items() if value is not None}
        assert json.loads(snapshot.to_json()) == present


@EACH
def test_a_column_can_be_added_to_a_golden_table_on_paper(golden: GoldenTable):
    from lakeformat.paimon.schema_changes.apply import apply_changes

    schema = lake.open_table(golden.location).schema
    after = apply_changes(schema, [lake.add_column("new", "INT")], has_snapshots=True, now=1)
    assert after.fields[-1].id == schema.highest_field_id + 1


def test_tags_of_java_with_and_without_retention():
    t1, t2 = read_tags(*place("format-java/changelog_input"))
    assert (t1.name, t1.snapshot.id, t1.create_time, t1.time_retained) == ("t1", 1, None, None)
    assert t2.create_time == datetime(2026, 11, 20, 9, 32, 56, 725499)
    assert t2.time_retained == timedelta(days=1)
    assert t1.snapshot == t2.snapshot
    for tag in (t1, t2):
        assert Tag.from_json(tag.name, json.loads(tag.to_json())) == tag


def test_a_tag_keeps_a_snapshot_readable_that_has_expired():
    golden = TABLES["format-java/changelog_input"]
    with pytest.raises(lake.NotFoundError, match="snapshots 2 to 3 exist"):
        system_rows(golden, "files", snapshot=1)
    assert len(system_rows(golden, "files", tag="t1")) == 1


def test_a_tag_of_pypaimon_gives_the_rows_it_had():
    golden = TABLES["format/tags_and_branches"]
    rows = lake.open_table(golden.location).scan(tag="v1").to_arrow()
    assert_same_rows(rows_of(rows), golden.rows("tag_v1_rows"))


def test_a_branch_reads_its_own_snapshots_and_the_files_of_the_table():
    golden = TABLES["format/tags_and_branches"]
    dev = lake.open_table(golden.location, branch="dev")
    assert [snapshot.id for snapshot in dev.snapshots()] == [1]
    assert_same_rows(rows_of(dev.scan().to_arrow()), golden.rows("tag_v1_rows"))
    storage, layout = place("format/tags_and_branches")
    assert [branch.name for branch in branches(storage, layout)] == ["dev"]
    assert read_tag(storage, layout.on_branch("dev"), "v1").snapshot.id == 1


@pytest.mark.parametrize(
    ("name", "consumer", "number"),
    [("format/tags_and_branches", "reader1", 2), ("format-java/changelog_input", "me", 3)],
)
def test_consumers_of_both_writers(name, consumer, number):
    [found] = read_consumers(*place(name), SYSTEM)
    assert (found.id, found.next_snapshot) == (consumer, number)


def test_a_long_lived_changelog_is_the_snapshot_that_expired():
    storage, layout = place("format-java/changelog_input")
    assert changelog_ids(storage, layout) == [1]
    changelog = read_changelog(storage, layout, 1)
    assert changelog == read_tag(storage, layout, "t1").snapshot
    assert changelog.changelog_manifest_list is not None


def test_statistics_that_java_wrote_are_read_and_written_alike():
    golden = TABLES["format-java/changelog_input"]
    storage, layout = place(golden.name)
    analyzed = lake.open_table(golden.location).latest_snapshot()
    found = read_statistics(storage, layout, analyzed.statistics)
    assert found.columns["k"] == ColumnStatistics(0, 2, "1", "30", 0, 4, 4)
    assert (found.merged_record_count, found.merged_record_size) == (1, 100)
    assert TableStatistics.from_json(json.loads(found.to_json())) == found
    [row] = system_rows(golden, "statistics")
    assert json.loads(row["colstat"])["v"]["max"] == "a"


def test_a_reused_name_is_another_column_in_each_schema():
    golden = TABLES["format/schema_evolved"]
    schemas = system_rows(golden, "schemas")
    ids = [
        {field["name"]: field["id"] for field in json.loads(schema["fields"])}.get("gone")
        for schema in schemas
    ]
    assert ids == [3, 3, 3, None, None, 5]
    for file in system_rows(golden, "files"):
        assert f"gone={file['record_count']}," in file["null_value_counts"]


def test_statistics_of_columns_are_shown_as_java_shows_them():
    [file] = system_rows(TABLES["format-java/stats_truncation"], "files")
    assert file["null_value_counts"] == "{arr=null, b=0, n=1, nc=null, s=0}"
    assert "s=abcdefghijklmnop}" in file["min_value_stats"]
    assert "s=中文abcdefghijklmo}" in file["max_value_stats"]


def test_partitions_are_shown_by_value_whatever_their_directories_are_called():
    for name in ("partition_names_legacy_true", "partition_names_legacy_false"):
        golden = TABLES[f"format-java/{name}"]
        shown = {file["partition"] for file in system_rows(golden, "files")}
        assert shown == {
            "{null, null, null, null,   , null, null}",
            "{2022-01-08, 2023-11-14 22:13:20.123456, true, 1.50, a b/c=d:e%é, 1.0E10, "
            "01:02:03.004}",
        }


def test_partitions_that_share_a_directory_stay_apart():
    partitions = system_rows(TABLES["format/append_partitioned"], "partitions")
    assert [row["partition"] for row in partitions] == [
        "region=__DEFAULT_PARTITION__/day=1969-12-31",
        "region=__DEFAULT_PARTITION__/day=2024-01-01",
        "region=a/b=c:d%/day=2024-01-02",
        "region=north west/day=2024-01-01",
        "region=north west/day=__DEFAULT_PARTITION__",
    ]


@pytest.mark.parametrize("bits", [32, 64])
def test_deletion_vectors_are_counted_and_shown(bits):
    golden = TABLES[f"format-java/pk_dv_bitmap{bits}"]
    [partition] = system_rows(golden, "partitions")
    [index] = system_rows(golden, "table_indexes")
    assert partition["deleted_record_count"] == 2
    assert index["index_type"] == "DELETION_VECTORS"
    [found] = index["dv_ranges"]
    names = [file["file_path"].rpartition("/")[2] for file in system_rows(golden, "files")]
    assert (found["f0"] in names, found["_CARDINALITY"]) == (True, 2)


def test_a_foreign_table_is_altered_without_its_foreign_options_being_lost(tmp_path):
    golden = TABLES["format-java/changelog_input"]
    warehouse = tmp_path / "shop.db" / "orders" / "schema"
    warehouse.mkdir(parents=True)
    source = Path(golden.location) / "schema" / "schema-0"
    (warehouse / "schema-0").write_bytes(source.read_bytes())
    catalog = lake.open_catalog(str(tmp_path))
    altered = catalog.alter_table("shop.orders", lake.add_column("note", "STRING"))
    before = lake.open_table(golden.location).schema
    assert altered.schema.options == before.options
    assert altered.schema.primary_keys == ("k",)
    assert altered.schema.column_names == ["k", "v", "note"]


def test_a_snapshot_of_java_reads_without_any_optional_member():
    [snapshot, _] = lake.open_table(TABLES["format-java/changelog_input"].location).snapshots()
    required = {"id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser"}
    required |= {"commitIdentifier", "commitKind", "timeMillis"}
    members = {key: value for key, value in snapshot.members().items() if key in required}
    bare = Snapshot.from_json({**members, "logOffsets": {"0": 1}})
    assert (bare.version, bare.total_record_count, bare.uuid) == (0, 0, None)
