"""Deletes of the rows that Java deleted: the same deletes and counts; other readers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.golden.iceberg import IcebergTable, iceberg_table
from tests.golden.relocated import relocate

SIZES = ("added-files-size", "removed-files-size", "total-files-size")
"""Each writer has its own encodings of Parquet, and copies of tables have longer paths."""
DELETES = [
    ("mor_partition_granularity", 3),
    ("mor_partition_granularity", 4),
    ("mor_position_deletes", 2),
    ("v2_upgraded_to_v3", 3),
    ("v3_deletion_vectors", 2),
    ("v3_deletion_vectors", 4),
]
"""Tables, and the places of snapshots in which Spark deleted rows."""


def opened(name: str, root: Path) -> tuple[IcebergTable, Any]:
    golden = iceberg_table(name)
    relocate(golden.as_written, root, golden.expected["original_root"])
    return golden, lake.open_table(str(root))


def ids_of(table: Any, snapshot: int) -> set[int]:
    return set(table.scan(["id"], snapshot=snapshot).to_arrow()["id"].to_pylist())


def new_deletes(table: Any) -> Counter[tuple[Any, ...]]:
    """The deletes that the newest snapshot added, without what differs between writers."""
    head = table.latest_snapshot()
    rows = table.system_table("entries").scan().to_arrow().to_pylist()
    return Counter(
        (
            *(each["data_file"][name] for name in ("content", "file_format", "record_count")),
            repr(each["data_file"].get("partition")),
            each["data_file"]["content_size_in_bytes"],
        )
        for each in rows
        if each["status"] == 1
        and each["snapshot_id"] == head.snapshot_id
        and each["data_file"]["content"]
    )


def counts_in(summary: Mapping[str, str]) -> dict[str, str]:
    kinds = ("added-", "changed-", "deleted-", "removed-", "total-")
    return {key: summary[key] for key in summary.keys() - SIZES if key.startswith(kinds)}


@pytest.mark.parametrize(("name", "place"), DELETES)
def test_the_same_rows_are_deleted_with_the_entries_and_counts_of_java(name, place, tmp_path):
    golden, table = opened(name, tmp_path / "t")
    of_java = golden.expected["snapshots"][place]
    before = of_java["parent_id"]
    deleted = ids_of(table, before) - ids_of(table, of_java["snapshot_id"])
    table.rollback(snapshot=of_java["snapshot_id"])
    entries = new_deletes(table)
    table.rollback(snapshot=before)
    table.delete(f"id IN ({', '.join(map(str, deleted))})")
    newest = table.latest_snapshot()
    assert ids_of(table, newest.snapshot_id) == ids_of(table, of_java["snapshot_id"])
    assert new_deletes(table) == entries
    assert newest.operation == of_java["operation"]
    assert counts_in(newest.summary) == counts_in(of_java["summary"])


@pytest.mark.parametrize("name", ["mor_position_deletes", "v3_deletion_vectors"])
def test_pyiceberg_reads_the_rows_that_are_left(name, tmp_path):
    from pyiceberg.table import StaticTable

    _, table = opened(name, tmp_path / "t")
    everything = table.scan(["id"]).to_arrow()["id"].to_pylist()
    table.write(pa.table({"id": pa.array(range(100, 110), table.scan(["id"]).schema.types[0])}))
    table.delete(f"id IN ({everything[0]}, 101, 102, 109)")
    table.delete("id = 105")
    log = table.system_table("metadata_log_entries").scan().to_arrow()
    newest = log["file"].to_pylist()[-1]
    found = StaticTable.from_metadata(newest).scan(selected_fields=("id",)).to_arrow()
    left = {*everything[1:], 100, 103, 104, 106, 107, 108}
    assert set(found["id"].to_pylist()) == left
    assert set(table.scan(["id"]).to_arrow()["id"].to_pylist()) == left
