"""A missing or impossibly named file: the error names it, and the file that refers to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CorruptTableError
from lakeformat.paimon.read.plan import find_manifest, plan_files
from tests.conformance.format_checklist.keyed_table import KeyedTable
from tests.rewriting import delta_of, rewrite_entries, rewrite_list


@pytest.fixture
def orders(tmp_path) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1, 2]}))
    return table


@pytest.fixture
def root(orders, tmp_path) -> Path:
    return tmp_path / "shop.db" / "orders"


def complaint(table: lake.Table) -> str:
    with pytest.raises(CorruptTableError) as caught:
        table.scan().to_arrow()
    return str(caught.value)


def only(root: Path, pattern: str) -> Path:
    [path] = root.glob(pattern)
    return path


def test_a_missing_manifest_list_is_named_with_its_snapshot(orders, root):
    lost = only(root, "manifest/manifest-list-*-0")
    lost.unlink()
    told = complaint(orders)
    assert lost.name in told
    assert "snapshot 1 of" in told


def test_a_missing_manifest_is_named_with_its_list_and_snapshot(orders, root):
    lost = only(root, "manifest/manifest-????????-*")
    lost.unlink()
    told = complaint(orders)
    assert lost.name in told
    assert f"{only(root, 'manifest/manifest-list-*-0').name} of snapshot 1)" in told


def test_a_missing_data_file_is_named_with_its_manifest(orders, root):
    lost = only(root, "bucket-0/*")
    lost.unlink()
    told = complaint(orders)
    assert lost.name in told
    assert only(root, "manifest/manifest-????????-*").name in told


def test_a_manifest_of_an_impossible_name_is_named_with_its_list(orders, root):
    [manifest] = delta_of(orders)
    rewrite_list(orders, [replace(manifest, file_name="../manifest")])
    told = complaint(orders)
    assert "'../manifest', which is not a valid file name" in told
    assert f"{only(root, 'manifest/manifest-list-*-0').name} of snapshot 1)" in told


@pytest.mark.parametrize("show", ["rows", "files"])
def test_a_data_file_of_an_impossible_name_is_named_with_its_manifest(orders, root, show):
    rewrite_entries(orders, lambda e: replace(e, file=replace(e.file, file_name="a/b.parquet")))
    told = complaint(orders if show == "rows" else orders.system_table(show))
    assert "'a/b.parquet', which is not a valid file name" in told
    assert only(root, "manifest/manifest-????????-*").name in told


def test_the_manifest_that_is_named_is_the_one_of_the_file_and_not_of_its_namesake(orders, root):
    orders.write(pa.table({"id": [3]}))
    rewrite_entries(orders, lambda e: replace(e, bucket=1, file=replace(e.file, file_name="f")))
    snapshot = orders.latest_snapshot()
    [entry] = [e for e in plan_files(orders._handle, snapshot) if e.bucket == 1]
    away = replace(entry, bucket=2)
    assert find_manifest(orders._handle, snapshot, entry).endswith(delta_of(orders)[0].file_name)
    assert find_manifest(orders._handle, snapshot, away).startswith("snapshot 2 of")


@pytest.mark.parametrize("table", ["manifests", "files", "partitions", "rows"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_list_is_named_with_its_snapshot_by_every_reader(orders, root, table, number):
    lost = only(root, f"manifest/manifest-list-*-{number}")
    lost.unlink()
    told = complaint(orders if table == "rows" else orders.system_table(table))
    assert lost.name in told
    assert "snapshot 1 of" in told


@pytest.fixture
def by_day(tmp_path) -> lake.Table:
    """A table whose partition row is damaged."""
    golden = KeyedTable(
        str(tmp_path / "t"),
        (("day", "STRING NOT NULL"), ("k", "INT NOT NULL")),
        ["k"],
        {"bucket": "1"},
        ["day"],
    )
    golden.commit(golden.write([{"day": "monday", "k": 1}], partition=["monday"]))
    return golden.open()


@pytest.mark.parametrize(
    ("table", "change", "field"),
    [
        ("rows", lambda e: replace(e, partition=e.partition[:12]), "_PARTITION"),
        ("files", lambda e: replace(e, partition=e.partition[:12]), "_PARTITION"),
        ("partitions", lambda e: replace(e, partition=e.partition[:12]), "_PARTITION"),
        ("files", lambda e: replace(e, file=replace(e.file, min_key=bytes(13))), "_MIN_KEY"),
        (
            "files",
            lambda e: replace(
                e, file=replace(e.file, value_stats=replace(e.file.value_stats, min_values=b"x"))
            ),
            "_VALUE_STATS",
        ),
    ],
)
def test_a_damaged_binary_row_is_named_with_its_field_file_and_manifest(
    by_day, table, change, field
):
    rewrite_entries(by_day, change)
    [manifest] = delta_of(by_day)
    told = complaint(by_day if table == "rows" else by_day.system_table(table))
    assert field in told
    assert "data-" in told
    assert manifest.file_name in told


OPERATIONS = {
    "compact": lambda table: table.compact(),
    "a part of it": lambda table: table.compact(partitions=[{"day": "monday"}]),
    "plan": lambda table: table.plan_compaction(),
    "health": lambda table: table.health(),
    "drop": lambda table: table.drop_partitions([{"day": "monday"}]),
    "done": lambda table: table.mark_partitions_done([{"day": "monday"}]),
}


@pytest.mark.parametrize("done", OPERATIONS)
def test_a_damaged_partition_is_named_with_its_manifest_by_every_operation(by_day, done):
    rewrite_entries(by_day, lambda e: replace(e, partition=e.partition[:12]))
    [manifest] = delta_of(by_day)
    with pytest.raises(CorruptTableError, match=rf"{manifest.file_name}: .* is damaged"):
        OPERATIONS[done](by_day)


def test_a_damaged_partition_is_named_with_its_manifest_when_rows_are_sorted(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("day", "INT")]
    table = catalog.create_table("shop.orders", columns, partition_by=["day"])
    table.write(pa.table({"id": [1], "day": pa.array([1], pa.int32())}))
    rewrite_entries(table, lambda e: replace(e, partition=e.partition[:12]))
    [manifest] = delta_of(table)
    with pytest.raises(CorruptTableError, match=rf"{manifest.file_name}: .* is damaged"):
        table.compact(order_by=["id"])


def test_a_damaged_key_is_named_with_its_file_and_table_by_a_compaction(by_day):
    rewrite_entries(by_day, lambda e: replace(e, file=replace(e.file, min_key=bytes(13))))
    with pytest.raises(CorruptTableError, match=rf"{by_day.location}: _MIN_KEY of data file data-"):
        by_day.compact()


def test_damaged_partition_statistics_are_named_with_their_manifest(by_day):
    [manifest] = delta_of(by_day)
    broken = replace(manifest.partition_stats, min_values=b"no row")
    rewrite_list(by_day, [replace(manifest, partition_stats=broken)])
    told = complaint(by_day.system_table("manifests"))
    assert "_PARTITION_STATS" in told
    assert manifest.file_name in told
    assert "manifest-list-" in told
