"""Statistics belong to the snapshot that was read; a failure leaves neither them nor a file."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.append import append
from tests.golden.iceberg import iceberg_table
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.write.made_tables import head_of, made_table, stored_files


@pytest.fixture
def handle(storage):
    """A table with the rows 0 to 3, of which 0 is deleted."""
    found = made_table(storage)
    append(found, pa.table({"id": [0, 1, 2, 3], "k": ["a", "b", "b", None]}))
    delete_by_key(found, 0)
    return found


def test_live_values_are_counted(handle):
    report = IcebergTable(handle).analyze()
    assert report.statistics == {"id": 3, "k": 1}
    assert (report.rows, report.analyzed_snapshot_id) == (3, head_of(handle).snapshot_id)
    [file] = handle.load().metadata.statistics
    assert [each["properties"] for each in file.blob_metadata] == [{"ndv": "3"}, {"ndv": "1"}]
    assert file.snapshot_id == head_of(handle).snapshot_id
    storage, path = handle.load().places.place(file.statistics_path)
    content = storage.read(path)
    assert len(content) == file.file_size_in_bytes
    assert content[-file.file_footer_size_in_bytes :][:4] == content[:4] == b"PFA1"


def test_a_snapshot_with_these_statistics_is_not_read_again(handle, storage):
    table = IcebergTable(handle)
    table.analyze(["id"])
    files = stored_files(storage)
    assert table.analyze(["id"]).replayed
    assert stored_files(storage) == files
    assert not table.analyze("all").replayed
    assert len(handle.load().metadata.statistics) == 1
    append(handle, pa.table({"id": [9], "k": ["z"]}))
    assert table.analyze().statistics == {"id": 4, "k": 2}
    assert len(handle.load().metadata.statistics) == 2


def test_a_dry_run_publishes_nothing(handle, storage):
    files = stored_files(storage)
    report = IcebergTable(handle).analyze(dry_run=True)
    assert report.reason.startswith("would publish statistics: 2 columns of 3 rows")
    assert stored_files(storage) == files


def test_columns_of_every_type_are_counted_or_named():
    table = lake.open_table(iceberg_table("all_types").location)
    report = table.analyze(dry_run=True)
    assert {*report.statistics, *report.skipped} == {*table.schema.column_names}
    assert all(report.statistics.values())


@pytest.mark.parametrize(
    ("columns", "match"), [(["ID"], "has no column 'ID' at .* 'id'"), ("id", "list of names")]
)
def test_wrong_columns_are_named(handle, columns, match):
    with pytest.raises(InvalidRequestError, match=match):
        IcebergTable(handle).analyze(columns)


def test_the_type_of_a_nested_column_is_named_in_the_words_of_iceberg(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("db")
    pairs = pa.map_(pa.string(), pa.int64())
    nested = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string())), ("z", pairs)])
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", nested)]))
    with pytest.raises(InvalidRequestError) as refused:
        table.analyze(["s"])
    named = "the type struct<x: int, y: list<string>, z: map<string, long>>, whose values"
    assert named in str(refused.value)


def test_a_table_without_a_column_that_can_be_counted_has_nothing_to_count(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", [("tags", "ARRAY<INT>")])
    table.write(pa.table({"tags": [[1]]}))
    report = table.analyze()
    assert (report.statistics, report.skipped, report.rows) == (None, ("tags",), None)
    assert report.reason == "no column has a type whose values can be counted"
    assert table._handle.load().metadata.statistics == ()


def test_an_empty_table_has_nothing_to_count(storage):
    report = IcebergTable(made_table(storage)).analyze()
    assert report.statistics is None
    assert "no snapshot" in report.reason


def test_no_file_is_left_after_a_conflict(handle, storage):
    properties = {"commit.retry.num-retries": "0"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, properties))
    files = stored_files(storage)

    class Losing(type(handle.pointer)):
        def publish(self, base, metadata):
            return None

    handle.pointer.__class__ = Losing
    with pytest.raises(CommitConflictError):
        IcebergTable(handle).analyze()
    assert stored_files(storage) == files
