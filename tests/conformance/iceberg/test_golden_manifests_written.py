"""Manifests and manifest lists of Java, written by us, hold what Java wrote."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakeformat.iceberg.loaded_metadata import LoadedMetadata, load_metadata
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter, encode_manifest_list
from lakeformat.iceberg.metadata.metadata_file import find_metadata_file
from lakeformat.storage import NO_ROOTS, open_storage
from tests.golden.iceberg import ICEBERG_TABLES, iceberg_table

pytestmark = pytest.mark.parametrize("name", ICEBERG_TABLES)
OF_THE_COMMIT = {"manifest_length", "added_snapshot_id", "sequence_number", "first_row_id"}
"""The members of a list that do not follow from the entries of the manifest."""


@cache
def loaded(name: str) -> LoadedMetadata:
    storage, root = open_storage(iceberg_table(name).location)
    return load_metadata(storage, root, find_metadata_file(storage, root), NO_ROOTS)


def manifests(name: str) -> Iterator[tuple[pa.Table, dict[str, Any], pa.Table, ManifestWriter]]:
    """Each manifest of the newest snapshot: its row in the list, its entries, and a writer."""
    table = loaded(name)
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    listed = read_manifest_list(table.places, snapshot)
    for place in range(len(listed)):
        row = listed.slice(place, 1)
        (entries,) = read_entries(table.places, table.metadata, row).values()
        described = row.to_pylist()[0]
        spec = table.metadata.spec_of(described["partition_spec_id"])
        yield (
            row,
            described,
            entries,
            ManifestWriter(table.metadata, spec, row["content"][0].as_py()),
        )


class Elsewhere:
    """The places of a table, with other bytes for one file."""

    uri = "memory://t"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, address: str) -> bytes:
        return self.content


def test_a_manifest_written_by_us_has_the_same_entries(name):
    for row, _, entries, writer in manifests(name):
        content = Elsewhere(writer.encode(entries))
        again = read_entries(content, loaded(name).metadata, row)
        assert [*again.values()] == [entries]


def test_a_manifest_is_described_as_java_describes_it(name):
    snapshot = loaded(name).metadata.current_snapshot
    for _, described, entries, writer in manifests(name):
        (ours,) = writer.describe("m", 0, entries, snapshot).to_pylist()
        ours["manifest_path"] = described["manifest_path"]
        left_out = OF_THE_COMMIT
        assert {key: ours[key] for key in ours.keys() - left_out} == {
            key: described[key] for key in described.keys() - left_out
        }


def test_a_manifest_has_the_schema_and_the_header_of_java(name):
    """The schema of each field with its id; only Java's descriptions of the fields are left out."""
    places, version = loaded(name).places, loaded(name).metadata.format_version
    for _, described, entries, writer in manifests(name):
        theirs = header_of(places.read(described["manifest_path"]))
        if theirs["format-version"] != str(version):
            continue  # it was written before the table was upgraded
        ours = header_of(writer.encode(entries))
        wanted = without_docs(json.loads(theirs["avro.schema"]))
        assert by_id(json.loads(ours["avro.schema"])) == by_id(wanted)
        assert ours["partition-spec-id"] == theirs["partition-spec-id"]
        assert ours["content"] == theirs.get("content", "data")
        assert json.loads(ours["partition-spec"]) == json.loads(theirs["partition-spec"])
        assert json.loads(ours["schema"]).keys() == json.loads(theirs["schema"]).keys()


def test_a_manifest_list_written_by_us_has_the_same_manifests(name):
    table = loaded(name)
    for snapshot in table.metadata.snapshots:
        listed = read_manifest_list(table.places, snapshot)
        theirs = header_of(table.places.read(snapshot.manifest_list))
        content = encode_manifest_list(int(theirs["format-version"]), listed, snapshot)
        assert read_manifest_list(Elsewhere(content), snapshot) == listed
        ours = header_of(content)
        schema = without_docs(json.loads(theirs.pop("avro.schema")))
        assert by_id(json.loads(ours.pop("avro.schema"))) == by_id(schema)
        theirs.pop("iceberg.schema")
        assert ours == theirs


def header_of(content: bytes) -> dict[str, str]:
    return dict(fastavro.reader(io.BytesIO(content)).metadata)


def without_docs(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_docs(each) for each in schema]
    if isinstance(schema, dict):
        return {key: without_docs(each) for key, each in schema.items() if key != "doc"}
    return schema


def by_id(schema: Any) -> Any:
    """A record with its fields in the order of their ids; Java's order differs by version."""
    if isinstance(schema, list):
        return [by_id(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: by_id(each) for key, each in schema.items()}
    if "fields" in found:
        found["fields"] = sorted(found["fields"], key=lambda field: field["field-id"])
    return found
