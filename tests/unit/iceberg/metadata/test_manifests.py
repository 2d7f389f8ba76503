"""Manifests and their lists are read by field ids, and refused by name if they do not fit."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import numpy as np
import pytest

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.files.avro.avro_container import AvroBlocks
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.avro_records import RecordFile, has_int
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA, read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata, metadata_from_json
from lakeformat.storage import MemoryStorage
from lakeformat.storage.location import location_of
from tests.unit.iceberg.metadata.test_table_metadata import OF_VERSION_2

LIST = "file:///t/metadata/snap-7.avro"
MANIFEST = "file:///t/metadata/a-m0.avro"

LIST_FIELDS = {
    500: ("manifest_path", "string"),
    501: ("manifest_length", "long"),
    502: ("partition_spec_id", "int"),
    517: ("content", "int"),
    515: ("sequence_number", "long"),
    516: ("min_sequence_number", "long"),
    503: ("added_snapshot_id", "long"),
    504: ("added_data_files_count", "int"),  # the name that the first writers gave it
    519: ("key_metadata", ["null", "bytes"]),
    520: ("first_row_id", ["null", "long"]),
}
FILE_FIELDS = {
    134: ("content", "int"),
    100: ("file_path", "string"),
    101: ("file_format", "string"),
    102: ("partition", {"type": "record", "name": "r102", "fields": []}),
    103: ("record_count", "long"),
    104: ("file_size_in_bytes", "long"),
    131: ("key_metadata", ["null", "bytes"]),
    142: ("first_row_id", ["null", "long"]),
}
LISTED = {
    "manifest_path": MANIFEST,
    "manifest_length": 10,
    "partition_spec_id": 0,
    "content": 0,
    "sequence_number": 5,
    "min_sequence_number": 5,
    "added_snapshot_id": 7,
    "added_data_files_count": 1,
    "key_metadata": None,
    "first_row_id": 100,
}
FILE = {
    "content": 0,
    "file_path": "file:///t/data/a.parquet",
    "file_format": "parquet",
    "partition": {},
    "record_count": 10,
    "file_size_in_bytes": 20,
    "key_metadata": None,
    "first_row_id": None,
}
ENTRY = {"status": 1, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None}


def record(name: str, fields: dict[int, tuple[str, Any]]) -> dict[str, Any]:
    listed = [{"name": n, "type": kind, "field-id": key} for key, (n, kind) in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


ENTRY_FIELDS = {
    0: ("status", "int"),
    1: ("snapshot_id", ["null", "long"]),
    3: ("sequence_number", ["null", "long"]),
    4: ("file_sequence_number", ["null", "long"]),
    2: ("data_file", record("r2", FILE_FIELDS)),
}


def encode(schema: dict[str, Any], records: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), records)
    return buffer.getvalue()


def table_of(listed: dict[str, Any], entries: list[dict[str, Any]]) -> FilePlaces:
    """A table with one manifest, which its list describes."""
    storage = MemoryStorage("t")
    storage.overwrite("t/metadata/snap-7.avro", encode(record("l", LIST_FIELDS), [listed]))
    storage.overwrite("t/metadata/a-m0.avro", encode(record("e", ENTRY_FIELDS), entries))
    return FilePlaces(storage, "t", location_of("file:///t"))


def metadata() -> TableMetadata:
    return metadata_from_json(OF_VERSION_2)


def manifests_of(places: FilePlaces):
    return read_manifest_list(places, Snapshot(7, 1000, manifest_list=LIST))


def entries_of(listed: dict[str, Any], *entries: dict[str, Any]) -> list[dict[str, Any]]:
    places = table_of(LISTED | listed, list(entries))
    [found] = read_entries(places, metadata(), manifests_of(places)).values()
    return found.to_pylist()


def entry(file: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    return ENTRY | members | {"data_file": FILE | (file or {})}


def test_a_field_is_found_by_its_id_under_any_name():
    [row] = manifests_of(table_of(LISTED, [])).to_pylist()
    assert row["added_files_count"] == 1
    assert row["deleted_files_count"] is None
    assert list(row) == MANIFEST_SCHEMA.names


def test_an_added_file_has_the_numbers_of_its_manifest():
    [row] = entries_of({}, entry())
    found = [row[key] for key in ("snapshot_id", "sequence_number", "file_sequence_number")]
    assert (found, row["file_format"], row["spec_id"]) == ([7, 5, 5], "PARQUET", 0)


def test_an_entry_keeps_the_numbers_that_it_has():
    [row] = entries_of(
        {}, entry(status=0, snapshot_id=3, sequence_number=2, file_sequence_number=4)
    )
    found = [row[key] for key in ("snapshot_id", "sequence_number", "file_sequence_number")]
    assert found == [3, 2, 4]


def test_files_without_a_first_row_id_follow_each_other():
    numbered = {"sequence_number": 1, "file_sequence_number": 1}
    rows = entries_of(
        {},
        entry(),
        entry({"first_row_id": 7}, status=0, **numbered),
        entry(status=2, **numbered),
        entry({"record_count": 3}),
        entry(),
    )
    assert [row["first_row_id"] for row in rows] == [100, 7, None, 110, 113]


def test_files_of_a_manifest_without_a_first_row_id_have_none():
    rows = entries_of({"first_row_id": None}, entry({"first_row_id": 7}))
    assert [row["first_row_id"] for row in rows] == [None]


def test_manifests_that_version_1_lists_by_their_paths_have_no_counts():
    places = table_of(LISTED, [entry()])
    manifests = read_manifest_list(places, Snapshot(7, 1000, manifests=(MANIFEST,)))
    [row] = manifests.to_pylist()
    assert (row["added_files_count"], row["sequence_number"]) == (None, 0)
    [found] = read_entries(places, metadata(), manifests).values()
    assert found["sequence_number"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("listed", "member", "reason"),
    [
        ({}, entry(status=0), "an entry without sequence_number, but the status"),
        ({}, entry(status=3), "the status of an entry is 3, but must be 0 or 1 or 2"),
        ({}, entry({"content": 1}), "the content of an entry is 1, but must be 0;"),
        ({"content": 1}, entry(), "the content of an entry is 0, but must be 1 or 2;"),
        ({"partition_spec_id": 4}, entry(), "the manifest .* has no partition spec 4, only"),
        ({"content": 2}, entry(), "the content of a manifest is 2, but must be 0 or 1"),
    ],
)
def test_an_entry_that_does_not_fit_is_named_with_its_manifest(listed, member, reason):
    with pytest.raises(CorruptTableError, match=reason):
        entries_of(listed, member)


@pytest.mark.parametrize(
    ("listed", "member", "reason"),
    [
        ({"key_metadata": b"k"}, entry(), "snap-7.avro names encrypted manifests"),
        ({}, entry({"key_metadata": b"k"}), "a-m0.avro names encrypted files"),
    ],
)
def test_encrypted_files_are_refused_by_name(listed, member, reason):
    with pytest.raises(UnsupportedError, match=reason):
        entries_of(listed, member)


def test_a_file_that_is_no_avro_file_is_named():
    places = table_of(LISTED, [])
    places.storage.overwrite("t/metadata/snap-7.avro", b"not Avro")
    with pytest.raises(CorruptTableError, match=r"snap-7\.avro \(8 bytes\) is not a readable Avro"):
        manifests_of(places)


def test_a_list_of_other_records_is_named_with_the_field_it_lacks():
    places = table_of(LISTED, [])
    other = encode(record("x", {1: ("a", "int")}), [{"a": 1}])
    places.storage.overwrite("t/metadata/snap-7.avro", other)
    with pytest.raises(CorruptTableError, match="without the required field 'manifest_path'"):
        manifests_of(places)


def test_a_manifest_of_other_records_is_named():
    places = table_of(LISTED, [])
    other = encode(record("x", {9: ("a", "int")}), [{"a": 1}])
    places.storage.overwrite("t/metadata/a-m0.avro", other)
    with pytest.raises(CorruptTableError, match=r"a-m0\.avro is not a manifest"):
        read_entries(places, metadata(), manifests_of(places))


def test_a_schema_of_endless_brackets_has_no_field_of_any_type():
    empty = np.empty(0, np.int64)
    deep = AvroBlocks(b"[" * 100_000, empty.view(np.uint8), empty, empty, empty)
    assert not has_int(RecordFile("m.avro", 1, deep), 1000)
