"""Manifests decoded field after field have the entries of the decoder of single records."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sample_iceberg import write_metadata_table
from lakeformat.errors import CorruptTableError
from lakeformat.files.avro.avro_container import READABLE_AFTER
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata import manifest
from lakeformat.iceberg.metadata.avro_records import RecordFile, read_record_file
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.metadata.metadata_file import read_metadata_file
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.table_metadata import TableMetadata, metadata_from_json
from lakeformat.iceberg.read.entry_columns import map_entry
from lakeformat.iceberg.types import StructType
from lakeformat.storage import MemoryStorage
from lakeformat.storage.location import location_of
from tests.damage import damaged, fuzzed, within_bounds
from tests.golden.iceberg import ICEBERG_TABLES, iceberg_table
from tests.unit.iceberg.metadata.test_manifests import (
    ENTRY_FIELDS,
    FILE_FIELDS,
    LIST_FIELDS,
    LISTED,
    encode,
    entry,
    metadata,
    record,
)
from tests.unit.iceberg.metadata.test_manifests import manifests_of as manifests_of_list

FULL = ("v3_deletion_vectors", "bucket_truncate", "java_types", "v1_append")
"""Deletes and row ids; partitions of most types; no sequence numbers."""


def metadata_of(name: str) -> TableMetadata:
    table = iceberg_table(name)
    storage = MemoryStorage("m")
    path = Path(table.location, table.expected["current_metadata"])
    storage.overwrite("t/v1.metadata.json", path.read_bytes())
    return read_metadata_file(storage, "t/v1.metadata.json")


@cache
def manifests_of(name: str) -> list[tuple[str, RecordFile, StructType]]:
    """Each manifest of a golden table, and the type of its partitions."""
    of_table, found = metadata_of(name), []
    for path in sorted(Path(iceberg_table(name).location, "metadata").glob("*.avro")):
        content = path.read_bytes()
        try:
            written = fastavro.reader(io.BytesIO(content)).metadata
        except ValueError:  # an orphan, which is no Avro file
            continue
        if "partition-spec-id" in written:
            spec = of_table.spec_of(int(written["partition-spec-id"]))
            found.append(
                (path.name, read_record_file(content, path.name), partition_type(of_table, spec))
            )
    return found


def by_column(
    file: RecordFile, partition: StructType, keys: frozenset[int] | None = None
) -> pa.Table | None:
    parts = manifest._by_column(file, manifest._Spec(0, partition, ()), keys)
    return _table(parts, partition) if parts else None


def by_record(file: RecordFile, partition: StructType) -> pa.Table:
    return _table(manifest._by_record(file, manifest._Spec(0, partition, ())), partition)


def _table(parts: Iterator[dict[str, pa.Array]] | list[Any], partition: StructType) -> pa.Table:
    schema = manifest.entry_schema(partition)
    found = pa.concat_tables(pa.table(each, schema=schema) for each in parts).combine_chunks()
    found.validate(full=True)
    return found


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    """Decode manifests with few entries by column as well."""
    monkeypatch.setattr(manifest, "_MANY", 1)


@pytest.mark.parametrize("name", ICEBERG_TABLES)
def test_manifests_of_java_have_equal_entries(name):
    for path, file, partition in manifests_of(name):
        found = by_column(file, partition)
        assert found is not None, path
        assert found.equals(by_record(file, partition)), path


@pytest.mark.parametrize("name", FULL)
def test_statistics_of_some_columns_are_those_of_all(name):
    for _, file, partition in manifests_of(name):
        whole = by_record(file, partition)
        found = by_column(file, partition, frozenset({1, 3}))
        assert found is not None
        for column in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            assert found[column].is_null().equals(whole[column].is_null())
            for key in (1, 3):
                assert map_entry(found[column], key).equals(map_entry(whole[column], key))


@pytest.mark.parametrize("window", [1 << 10, 2 << 20])
def test_a_manifest_of_many_blocks_is_read_in_windows_of_any_size(window, tmp_path, monkeypatch):
    monkeypatch.setattr("lakeformat.files.avro.record_windows._WINDOW_BYTES", window)
    write_metadata_table(tmp_path, 200)
    [path] = tmp_path.glob("metadata/*-m0.avro")
    file = read_record_file(path.read_bytes(), path.name)
    written = metadata_from_json(json.loads((tmp_path / "metadata/v1.metadata.json").read_text()))
    partition = partition_type(written, written.spec_of(0))
    found = by_column(file, partition)
    assert found is not None
    assert found.num_rows == 200
    assert found.equals(by_record(file, partition))


def made(fields: dict[int, tuple[str, Any]], *files: dict[str, Any]) -> RecordFile:
    """A manifest whose files have these fields, in this order."""
    content = encode(
        record("e", ENTRY_FIELDS | {2: ("data_file", record("r2", fields))}),
        [entry(each) for each in files],
    )
    return read_record_file(content, "m.avro")


NO_PARTITION = StructType(())


@pytest.mark.parametrize(
    "fields",
    [
        dict(reversed(FILE_FIELDS.items())),
        FILE_FIELDS | {142: ("first_row_id", ["long", "null"])},
        FILE_FIELDS | {999: ("new", ["null", {"type": "array", "items": "string"}])},
        FILE_FIELDS | {999: ("new", ["null", "string", "long"])},
        FILE_FIELDS | {999: ("new", {"type": "map", "values": "int"})},
        FILE_FIELDS | {101: ("file_format", ["null", "string"])},
        FILE_FIELDS | {101: ("file_format", ["string", "null"])},
    ],
    ids=[
        "other order",
        "null last",
        "unknown list",
        "unknown union",
        "unknown map",
        "format may be null",
        "format may be null, null last",
    ],
)
def test_fields_in_another_order_and_unknown_ones_do_not_matter(fields):
    given = [{"first_row_id": 5, "new": None}, {"record_count": -1, "new": None}]
    if fields.get(999, ("", None))[1] == {"type": "map", "values": "int"}:
        given = [each | {"new": {"a": 1}} for each in given]
    file = made(fields, *given)
    whole = by_record(file, NO_PARTITION)
    assert whole["record_count"].to_pylist() == [10, -1]
    found = by_column(file, NO_PARTITION)
    assert found is None or found.equals(whole)


@pytest.mark.parametrize("order", [FILE_FIELDS, dict(reversed(FILE_FIELDS.items()))])
def test_known_fields_in_any_order_need_no_decoder_of_single_records(order):
    assert by_column(made(order, {}, {}), NO_PARTITION) is not None


def test_a_file_whose_name_holds_the_format_is_left_to_the_other_decoder():
    file = made(FILE_FIELDS, {"file_path": "a/\x0eparquet", "file_format": "parquet"}, {})
    found = by_column(file, NO_PARTITION)
    assert found is None or found.equals(by_record(file, NO_PARTITION))
    assert by_record(file, NO_PARTITION)["file_path"].to_pylist()[0] == "a/\x0eparquet"


def test_manifests_of_several_formats_have_all_their_files():
    files = [{"file_format": each} for each in ("parquet", "orc", "parquet", "avro")]
    file = made(FILE_FIELDS, *files)
    found = by_column(file, NO_PARTITION)
    assert found is None or found.equals(by_record(file, NO_PARTITION))


@pytest.mark.parametrize(
    ("field_id", "name", "number"),
    [(103, "record_count", (1 << 63) - 1), (103, "record_count", -(1 << 63))],
)
def test_the_largest_numbers_are_read(field_id, name, number):
    found = by_column(made(FILE_FIELDS, {name: number}, {}), NO_PARTITION)
    assert found is not None
    assert found[name].to_pylist() == [number, 10]


def test_no_file_format_is_too_short_to_be_found():
    assert by_column(made(FILE_FIELDS, {"file_format": ""}), NO_PARTITION) is None


def with_content(file: RecordFile, content: bytes) -> RecordFile:
    """A manifest with other bytes of its records, in one block."""
    blocks = file.blocks
    data = np.frombuffer(content + bytes(READABLE_AFTER), np.uint8)
    ends = np.array([len(content)], np.int64)
    counts = np.array([blocks.counts.sum()], np.int64)
    return replace(file, blocks=replace(blocks, content=data, counts=counts, ends=ends))


@pytest.mark.parametrize("name", FULL)
@given(data=st.data())
@fuzzed(60)
def test_damaged_entries_are_never_other_entries(name, data):
    _, file, partition = data.draw(st.sampled_from(manifests_of(name)))
    size = len(file.blocks.content) - READABLE_AFTER
    content = data.draw(damaged(file.blocks.content[:size].tobytes()))
    broken = with_content(file, content)
    with within_bounds():
        found = by_column(broken, partition)
        try:
            whole = by_record(broken, partition)
        except CorruptTableError:
            whole = None
    if found is not None:
        assert whole is not None
        assert found.equals(whole)


def small_manifests(count: int) -> FilePlaces:
    """A table whose list names manifests of one to three entries, and one without any."""
    storage, listed = MemoryStorage("t"), []
    numbered = {"sequence_number": 1, "file_sequence_number": 1}
    for number in range(count):
        uri = f"file:///t/metadata/m{number}.avro"
        entries = [
            entry({"file_path": f"file:///t/{number}", "record_count": 5 + number}),
            entry({"first_row_id": 7}, status=0, snapshot_id=3, **numbered),
            entry(),
        ][: number % 4]
        storage.overwrite(f"t/metadata/m{number}.avro", encode(record("e", ENTRY_FIELDS), entries))
        row = {"manifest_path": uri, "sequence_number": 5 + number, "added_snapshot_id": number}
        first = None if number % 3 == 0 else 100 * number
        listed.append(LISTED | row | {"first_row_id": first, "added_data_files_count": 0})
    storage.overwrite("t/metadata/snap-7.avro", encode(record("l", LIST_FIELDS), listed))
    return FilePlaces(storage, "t", location_of("file:///t"))


def entries_of(places: FilePlaces) -> pa.Table:
    [found] = read_entries(places, metadata(), manifests_of_list(places)).values()
    return found.combine_chunks()


def test_small_manifests_decoded_together_have_the_entries_of_each(monkeypatch):
    places = small_manifests(20)
    together = entries_of(places)
    monkeypatch.setattr(manifest, "_MOST_TOGETHER", 1)
    assert together.num_rows == 30
    assert together.equals(entries_of(places))
    monkeypatch.setattr(manifest, "_MANY", 1 << 30)
    assert together.equals(entries_of(places))


def test_a_damaged_manifest_among_small_ones_is_named():
    places = small_manifests(20)
    wrong = encode(record("e", ENTRY_FIELDS), [entry(status=9)])
    places.storage.overwrite("t/metadata/m7.avro", wrong)
    with pytest.raises(
        CorruptTableError, match=r"m7\.avro is damaged: the status of an entry is 9"
    ):
        entries_of(places)
