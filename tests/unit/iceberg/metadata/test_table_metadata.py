"""Table metadata of each format version is read, and refused by name if it is not whole."""

from __future__ import annotations

import json

import pytest

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.table_metadata import TableMetadata, metadata_from_json
from lakeformat.iceberg.partition_spec import PartitionSpec
from lakeformat.iceberg.schema import Schema
from lakeformat.tables.json_file import decode_json_file

FIELDS = [{"id": 1, "name": "id", "required": False, "type": "int"}]
SCHEMA = {"type": "struct", "schema-id": 0, "fields": FIELDS}
SNAPSHOT = {
    "snapshot-id": 7,
    "sequence-number": 1,
    "timestamp-ms": 1000,
    "manifest-list": "file:///t/metadata/snap-7.avro",
    "summary": {"operation": "append"},
    "schema-id": 0,
}
OF_VERSION_1 = {
    "format-version": 1,
    "location": "file:///t",
    "last-updated-ms": 1000,
    "last-column-id": 1,
    "schema": SCHEMA,
    "partition-spec": [],
}
OF_VERSION_2 = {
    "format-version": 2,
    "table-uuid": "b1",
    "location": "file:///t",
    "last-sequence-number": 1,
    "last-updated-ms": 1000,
    "last-column-id": 1,
    "schemas": [SCHEMA],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "last-partition-id": 999,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
    "current-snapshot-id": 7,
    "snapshots": [SNAPSHOT],
}
OF_VERSION_3 = OF_VERSION_2 | {"format-version": 3, "next-row-id": 4}


def read(members: dict) -> TableMetadata:
    return decode_json_file(json.dumps(members).encode(), "v1.metadata.json", metadata_from_json)


def without(members: dict, key: str) -> dict:
    return {name: value for name, value in members.items() if name != key}


def test_version_1_may_have_one_schema_and_the_fields_of_one_spec():
    metadata = read(OF_VERSION_1)
    assert metadata.schema == Schema(0, metadata.schema.fields)
    assert metadata.partition_specs == (PartitionSpec(0),)
    assert (metadata.table_uuid, metadata.last_sequence_number) == (None, 0)
    assert (metadata.current_snapshot, dict(metadata.references)) == (None, {})


def test_a_snapshot_of_version_1_may_list_its_manifests():
    listed = without(SNAPSHOT, "manifest-list") | {"manifests": ["file:///t/metadata/a-m0.avro"]}
    [snapshot] = read(OF_VERSION_1 | {"snapshots": [listed]}).snapshots
    assert (snapshot.manifest_list, snapshot.manifests) == (None, ("file:///t/metadata/a-m0.avro",))


def test_the_current_snapshot_is_the_branch_main_where_no_reference_says_so():
    metadata = read(OF_VERSION_2)
    assert metadata.references == {"main": Reference("main", 7, "branch")}
    assert metadata.current_snapshot == metadata.snapshots[0]


def test_minus_one_is_a_table_without_a_snapshot():
    assert read(OF_VERSION_2 | {"current-snapshot-id": -1}).current_snapshot is None


def test_members_that_are_not_known_are_kept():
    assert read(OF_VERSION_3 | {"x-more": {"a": [1]}}).unknown == {"x-more": {"a": [1]}}


def test_statistics_of_an_unknown_kind_are_kept():
    blob = {"type": "acme-sketch-v9", "snapshot-id": 7, "sequence-number": 1, "fields": [1]}
    file = {
        "snapshot-id": 7,
        "statistics-path": "file:///t/metadata/7.stats",
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 5,
        "blob-metadata": [blob],
    }
    [found] = read(OF_VERSION_2 | {"statistics": [file]}).statistics
    assert (found.file_footer_size_in_bytes, found.blob_metadata) == (5, (blob,))


@pytest.mark.parametrize(
    ("whole", "key"),
    [
        (OF_VERSION_1, "location"),
        (OF_VERSION_1, "schema"),
        (OF_VERSION_1, "partition-spec"),
        (OF_VERSION_2, "table-uuid"),
        (OF_VERSION_2, "last-sequence-number"),
        (OF_VERSION_2, "schemas"),
        (OF_VERSION_2, "current-schema-id"),
        (OF_VERSION_2, "partition-specs"),
        (OF_VERSION_2, "sort-orders"),
        (OF_VERSION_3, "next-row-id"),
    ],
)
def test_a_missing_member_is_named_with_the_file(whole, key):
    words = f"v1.metadata.json lacks the member '{key}'; restore the file"
    with pytest.raises(CorruptTableError, match=words):
        read(without(whole, key))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"format-version": "2"}, "format-version is '2', not an int"),
        ({"format-version": 0}, "format-version is 0"),
        (
            {"current-schema-id": 5},
            r"the table file:///t has no schema 5, only 0; restore",
        ),
        ({"default-spec-id": 5}, "has no partition spec 5, only"),
        ({"current-snapshot-id": 8}, "names snapshot 8, which is not among the snapshots"),
        ({"refs": {"t": {"snapshot-id": 9, "type": "tag"}}}, "the tag 't' names snapshot 9"),
        ({"refs": {"main": {"snapshot-id": 7, "type": "twig"}}}, "'main' has the type 'twig'"),
        ({"snapshots": [without(SNAPSHOT, "timestamp-ms")]}, "lacks the member 'timestamp-ms'"),
        ({"snapshots": [without(SNAPSHOT, "manifest-list")]}, "lacks the member 'manifests'"),
        ({"properties": {"a": 1}}, "a is 1, not a text"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(changed, reason):
    with pytest.raises(CorruptTableError, match=reason):
        read(OF_VERSION_2 | changed)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"format-version": 4}, "its format version is 4, but this library reads up to 3"),
        ({"encryption-keys": [{"key-id": "k"}]}, r"the table is encrypted \(encryption-keys\)"),
        (
            {"snapshots": [SNAPSHOT | {"key-id": "k"}]},
            "the manifest list of snapshot 7 is encrypted",
        ),
    ],
)
def test_a_newer_or_encrypted_table_is_refused_by_name(changed, reason):
    with pytest.raises(UnsupportedError, match=rf"v1.metadata.json: .*{reason}"):
        read(OF_VERSION_3 | changed)


def test_a_snapshot_among_its_own_ancestors_is_refused():
    metadata = read(OF_VERSION_2 | {"snapshots": [SNAPSHOT | {"parent-snapshot-id": 7}]})
    with pytest.raises(CorruptTableError, match="snapshot 7 of file:///t is among its own"):
        list(metadata.ancestry(7))


def test_the_missing_schema_of_a_snapshot_is_named():
    metadata = read(OF_VERSION_2 | {"snapshots": [SNAPSHOT | {"schema-id": 4}]})
    with pytest.raises(CorruptTableError, match=r"snapshot 7 .* has no schema 4, only 0; choose"):
        metadata.schema_at(metadata.snapshots[0])


def test_ancestors_end_where_a_snapshot_has_expired():
    chain = [
        SNAPSHOT | {"snapshot-id": number, "parent-snapshot-id": number - 1} for number in (5, 6, 7)
    ]
    metadata = read(OF_VERSION_2 | {"snapshots": chain})
    assert [each.snapshot_id for each in metadata.ancestry(7)] == [7, 6, 5]


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("schemas", "schema-id 0"),
        ("partition-specs", "spec-id 0"),
        ("snapshots", "snapshot-id 7"),
    ],
)
def test_an_id_that_two_members_have_is_damage(key, named):
    twice = OF_VERSION_2 | {key: [*OF_VERSION_2[key], *OF_VERSION_2[key]]}
    with pytest.raises(CorruptTableError, match=f"the {named} is given more than once"):
        read(twice)
