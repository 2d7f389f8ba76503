"""Statistics of partitions: the columns of Java's file, one row for each partition and spec."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.table.table import IcebergTable
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.write.made_tables import head_of, made_table, stored_files

COUNTS = [
    "data_record_count",
    "data_file_count",
    "position_delete_record_count",
    "position_delete_file_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
]


def filled(storage, version: int) -> IcebergTable:
    """The partitions null, a and b; a row of a is deleted by position, and one of b by its key."""
    table = IcebergTable(made_table(storage, version, partition={"k": "identity"}))
    table.write(pa.table({"id": [1, 2, 3, 4, 5], "k": ["b", "a", "a", None, "b"]}))
    table.delete("id = 2")
    delete_by_key(table._handle, 5, partition={"k_part": "b"})
    return table


def written(table: IcebergTable) -> pq.ParquetFile:
    loaded = table._handle.load()
    [file] = loaded.metadata.partition_statistics
    storage, path = loaded.places.place(file.statistics_path)
    content = storage.read(path)
    assert len(content) == file.file_size_in_bytes
    assert file.snapshot_id == head_of(table._handle).snapshot_id
    return pq.ParquetFile(io.BytesIO(content))


@pytest.mark.parametrize("version", [2, 3])
def test_each_partition_has_its_counts_and_newest_change(storage, version):
    table = filled(storage, version)
    report = table.analyze_partitions()
    assert (report.partitions, report.analyzed_snapshot_id) == (
        3,
        head_of(table._handle).snapshot_id,
    )
    rows = written(table).read().to_pylist()
    assert [each["partition"] for each in rows] == [{"k_part": k} for k in (None, "a", "b")]
    files = int(version == 2)
    assert [[each[name] for name in COUNTS] for each in rows] == [
        [1, 1, 0, 0, 0, 0],
        [2, 1, 1, files, 0, 0],
        [2, 1, 0, 0, 1, 1],
    ]
    assert [each.get("dv_count", 0) for each in rows] == [0, 1 - files, 0]
    times = [each.timestamp_ms for each in table._handle.load().metadata.snapshots]
    assert [each["last_updated_at"] for each in rows] == times


@pytest.mark.parametrize("version", [2, 3])
def test_the_file_has_the_columns_and_ids_of_javas_file(storage, version):
    table = filled(storage, version)
    table.analyze_partitions()
    fields = written(table).schema_arrow
    ids = [int(each.metadata[b"PARQUET:field_id"]) for each in fields]
    assert ids == [*range(1, 14 if version == 3 else 13)]
    optional = [each.name for each in fields if each.nullable]
    deletes = COUNTS[2:] if version == 2 else []
    last = ["total_record_count", "last_updated_at", "last_updated_snapshot_id"]
    assert optional == [*deletes, *last]


def test_a_partition_whose_files_were_removed_is_listed_without_files(storage):
    table = filled(storage, 2)
    table.drop_partitions([{"k": "a"}])
    table.analyze_partitions()
    emptied = written(table).read().to_pylist()[1]
    assert [emptied[name] for name in COUNTS] == [0] * 6
    assert emptied["last_updated_snapshot_id"] == head_of(table._handle).snapshot_id


def test_a_snapshot_with_statistics_is_not_read_again(storage):
    table = filled(storage, 2)
    before = stored_files(storage)
    assert table.analyze_partitions(dry_run=True).partitions == 3
    assert stored_files(storage) == before
    table.analyze_partitions()
    after = stored_files(storage)
    assert table.analyze_partitions().replayed
    assert stored_files(storage) == after


def test_a_table_without_partitions_is_refused(storage):
    table = IcebergTable(made_table(storage))
    with pytest.raises(InvalidRequestError, match="has no partitions to count: call analyze"):
        table.analyze_partitions()
