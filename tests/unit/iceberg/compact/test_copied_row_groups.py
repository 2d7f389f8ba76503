"""Small files whose rows do not change become one file without being decoded."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.errors import CorruptTableError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.compact import copies
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.storage import MemoryStorage
from tests.damage import fuzzed
from tests.unit.files.false_footers import DAMAGES, with_footer
from tests.unit.iceberg.compact.made_deletes import delete_by_key, delete_by_vector
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    made_table,
    referenced_files,
    rows_of,
    stored_files,
)

COLUMNS: dict[str, Any] = {
    "id": "long",
    "text": "string",
    "number": "double",
    "amount": "decimal(30, 2)",
    "token": "uuid",
    "moment": "timestamptz",
    "tags": {"type": "list", "element-id": 20, "element": "string", "element-required": False},
    "place": {
        "type": "struct",
        "fields": [
            {"id": 21, "name": "x", "required": False, "type": "float"},
            {"id": 22, "name": "city", "required": False, "type": "string"},
        ],
    },
}


@pytest.fixture(autouse=True)
def _row_groups_of_any_size(monkeypatch):
    monkeypatch.setattr(copies, "_LEAST_GROUP_BYTES", 1)


def written(table: IcebergTable, first: int, count: int = 5, **columns: list[Any]) -> None:
    ids = range(first, first + count)
    values = {
        "id": ids,
        "text": [None if each % 4 == 3 else f"longer than sixteen bytes {each}" for each in ids],
        "number": [each / 4 for each in ids],
        "amount": ids,
        "token": [each.to_bytes(16, "big") for each in ids],
        "moment": ids,
        "tags": [[str(each), None] for each in ids],
        "place": [{"x": each / 2, "city": f"c{each}"} for each in ids],
        **columns,
    }
    schema = table.scan().schema
    arrays = [pa.array(values[each.name]).cast(each.type) for each in schema]
    table.write(pa.Table.from_arrays(arrays, schema=schema))


def filled(storage, version: int = 2, **more: Any) -> TableHandle:
    handle = made_table(storage, version, **{"columns": COLUMNS, **more})
    for first in (0, 10, 20):
        written(IcebergTable(handle), first)
    return handle


def compact(handle: TableHandle, **options: Any):
    return IcebergTable(handle).compact(**{"min_input_files": 2, **options})


def live_files(handle: TableHandle) -> list[dict[str, Any]]:
    return [each for each in entries_of(handle) if each["status"] != 2 and each["content"] == 0]


def content_of(handle: TableHandle, path: str) -> bytes:
    storage, place = handle.load().places.place(path)
    return storage.read(place)


def group_rows(handle: TableHandle) -> list[list[int]]:
    """The rows of each row group of each file: a decoded file has a single one."""
    found = []
    for each in live_files(handle):
        footer = pq.read_metadata(io.BytesIO(content_of(handle, each["file_path"])))
        found.append([footer.row_group(n).num_rows for n in range(footer.num_row_groups)])
    return sorted(found)


@pytest.mark.parametrize("version", [1, 2])
def test_files_become_one_whose_row_groups_are_theirs(storage, version):
    handle = filled(storage, version)
    before = rows_of(handle)
    report = compact(handle)
    assert group_rows(handle) == [[5, 5, 5]]
    assert rows_of(handle) == before
    assert (report.files_in, report.files_out, report.rows_out) == (3, 1, 15)
    assert stored_files(storage) == referenced_files(handle)


@pytest.mark.parametrize("codec", ["snappy", "uncompressed", "gzip"])
def test_files_of_several_codecs_are_copied_into_one(storage, codec):
    handle = filled(storage)
    other = {"write.parquet.compression-codec": codec}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, other))
    written(IcebergTable(handle), 30)
    before = rows_of(handle)
    compact(handle)
    assert group_rows(handle) == [[5, 5, 5, 5]]
    assert rows_of(handle) == before


def described(handle: TableHandle) -> dict[str, Any]:
    """The statistics of the only file; sizes depend on the number of row groups."""
    [file] = live_files(handle)
    left_out = ("file_path", "file_size_in_bytes", "column_sizes", "split_offsets", "snapshot_id")
    return {name: value for name, value in file.items() if name not in left_out}


def both_ways(write: Any, **more: Any) -> tuple[TableHandle, TableHandle]:
    """The same table twice: copied, and decoded because all files are rewritten."""
    copied, decoded = (
        made_table(MemoryStorage("t"), **{"columns": COLUMNS, **more}) for _ in range(2)
    )
    write(IcebergTable(copied))
    write(IcebergTable(decoded))
    compact(copied)
    compact(decoded, rewrite_all=True)
    return copied, decoded


@pytest.mark.parametrize("mode", ["truncate(16)", "truncate(3)", "full", "counts", "none"])
def test_the_entry_states_what_it_states_of_a_decoded_file(mode):
    def write(table: IcebergTable) -> None:
        written(table, 10, text=["\U0010ffff" * 20] * 5, number=[float("nan")] * 5)
        written(table, 0, text=[None] * 5, number=[-0.0, 0.0, None, float("nan"), 1.0])

    copied, decoded = both_ways(write, **{"write_metadata_metrics_default": mode})
    assert group_rows(copied) == [[5, 5]]
    assert group_rows(decoded) == [[10]]
    assert repr(described(copied)) == repr(described(decoded))


@given(data=st.data())
@fuzzed(10)
def test_any_values_are_read_and_described_as_if_decoded(data):
    texts = st.none() | st.text(max_size=20) | st.just("the same text")
    numbers = st.none() | st.floats(width=32)
    places = st.none() | st.fixed_dictionaries({"x": numbers, "city": texts})
    tags = st.none() | st.lists(texts, max_size=3)
    kinds = {"text": texts, "number": numbers, "place": places, "tags": tags}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "_LEAST_GROUP_BYTES", 1)
        parts = [
            {name: [data.draw(kind) for _ in range(3)] for name, kind in kinds.items()}
            for _ in range(3)
        ]

        def write(table: IcebergTable) -> None:
            for number, part in enumerate(parts):
                place = pa.array(part["place"], table.scan().schema.field("place").type)
                tags = pa.array(part["tags"], table.scan().schema.field("tags").type)
                text = pa.array(part["text"], pa.string())
                number_ = pa.array(part["number"], pa.float64())
                written(table, number * 3, 3, text=text, number=number_, place=place, tags=tags)

        copied, decoded = both_ways(write)
    assert group_rows(copied) == [[3, 3, 3]]
    assert repr(rows_of(copied)) == repr(rows_of(decoded))
    assert repr(described(copied)) == repr(described(decoded))


def test_a_bound_that_one_file_lacks_is_unknown(storage):
    handle = made_table(storage, columns=COLUMNS, write_metadata_metrics_default="counts")
    written(IcebergTable(handle), 0)
    full = {"write.metadata.metrics.default": "full"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, full))
    written(IcebergTable(handle), 10)
    compact(handle)
    assert group_rows(handle) == [[5, 5]]
    assert (described(handle)["lower_bounds"], described(handle)["upper_bounds"]) == ([], [])
    assert dict(described(handle)["value_counts"])[1] == 10


def test_files_of_the_target_size_are_followed_by_others(storage):
    handle = filled(storage)
    for first in (30, 40, 50, 60):
        written(IcebergTable(handle), first)
    size = max(each["file_size_in_bytes"] for each in live_files(handle))
    before = rows_of(handle)
    compact(handle, target_file_bytes=2 * size)
    assert group_rows(handle) == [[5], [5, 5, 5], [5, 5, 5]]
    assert rows_of(handle) == before


def test_partitions_are_copied_apart(storage):
    """The texts of these two partitions are the same: null and 'null'."""
    handle = made_table(storage, columns={"id": "long", "k": "string"}, partition={"k": "identity"})
    for _ in range(2):
        for value in (None, "null"):
            IcebergTable(handle).write(pa.table({"id": [1], "k": pa.array([value], pa.string())}))
    compact(handle)
    found = {each["partition"]["k_part"]: each["record_count"] for each in live_files(handle)}
    assert found == {None: 2, "null": 2}
    assert sorted(each["k"] or "" for each in rows_of(handle)) == ["", "", "null", "null"]


def change_schema(handle: TableHandle, **changed: Any) -> None:
    def with_change(loaded):
        old = loaded.metadata.schema
        fields = (old.fields[0], replace(old.fields[1], **changed), *old.fields[2:])
        schemas = (*loaded.metadata.schemas, replace(old, schema_id=1, fields=fields))
        return replace(loaded.metadata, schemas=schemas, current_schema_id=1)

    commit_metadata(handle, with_change)


def change_spec(handle: TableHandle) -> None:
    specs = (*handle.load().metadata.partition_specs, PartitionSpec(1, ()))
    commit_metadata(
        handle, lambda loaded: replace(loaded.metadata, partition_specs=specs, default_spec_id=1)
    )


CHANGES = {
    "rows are deleted by value": lambda handle: delete_by_key(handle, 1),
    "a column was renamed": lambda handle: change_schema(handle, name="other"),
    "a column has another id": lambda handle: change_schema(handle, id=99),
    "the partitions changed": change_spec,
    "all files are to be rewritten": lambda handle: None,
    "the row groups are small": lambda handle: None,
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_are_decoded_if(storage, monkeypatch, change):
    handle = filled(storage)
    CHANGES[change](handle)
    if "small" in change:
        monkeypatch.setattr(copies, "_LEAST_GROUP_BYTES", 1 << 20)
    before = rows_of(handle)
    compact(handle, rewrite_all="rewritten" in change)
    assert group_rows(handle) == [[len(before)]]
    assert rows_of(handle) == before


def lineage_of(handle: TableHandle) -> list[dict[str, Any]]:
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    return IcebergTable(handle).scan(columns).to_arrow().sort_by("id").to_pylist()


def test_files_of_version_3_that_do_not_store_the_ids_of_their_rows_are_decoded(storage):
    handle = filled(storage, 3)
    before = lineage_of(handle)
    compact(handle)
    assert group_rows(handle) == [[15]]
    assert lineage_of(handle) == before


def test_files_of_version_3_that_store_the_ids_of_their_rows_are_copied(storage):
    handle = filled(storage, 3)
    for first in (20, 10, 0):
        compact(handle, rewrite_all=True, where=f"id >= {first} and id < {first + 10}")
    assert group_rows(handle) == [[5], [5], [5]]
    before = lineage_of(handle)
    compact(handle)
    assert group_rows(handle) == [[5, 5, 5]]
    assert lineage_of(handle) == before


def test_files_with_deleted_rows_are_decoded_with_those_that_fill_no_file(storage):
    handle = filled(storage, 3)
    path = live_files(handle)[0]["file_path"]
    delete_by_vector(handle, path, 1)
    before = rows_of(handle)
    compact(handle)
    assert group_rows(handle) == [[14]]
    assert rows_of(handle) == before


@pytest.mark.parametrize("name", DAMAGES)
def test_a_footer_that_contradicts_its_file_is_named_and_nothing_is_left(storage, name):
    handle = filled(storage)
    path = live_files(handle)[1]["file_path"]
    _, place = handle.load().places.place(path)
    storage.overwrite(place, with_footer(storage.read(place), DAMAGES[name]))
    before = stored_files(storage)
    with pytest.raises(CorruptTableError, match=path.rpartition("/")[2]):
        compact(handle)
    assert stored_files(storage) == before


def test_a_file_that_is_cut_while_it_is_copied_is_named_and_nothing_is_left(storage, monkeypatch):
    handle = filled(storage)
    path = live_files(handle)[1]["file_path"]
    _, place = handle.load().places.place(path)
    write = TableWriter.copy

    def cut_and_write(self, files):
        storage.overwrite(place, storage.read(place)[:50])
        write(self, files)

    monkeypatch.setattr(TableWriter, "copy", cut_and_write)
    before = stored_files(storage)
    with pytest.raises(CorruptTableError, match=path.rpartition("/")[2]):
        compact(handle)
    assert stored_files(storage) == before
