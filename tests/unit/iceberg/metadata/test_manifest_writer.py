"""Written manifests: partitions of every type, names that Avro refuses, counts and bounds."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakeformat.iceberg.metadata.manifest import (
    ADDED,
    DELETED,
    EXISTING,
    entry_schema,
    read_entries,
)
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter, encode_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.type_json import type_from_json
from lakeformat.iceberg.types import Field

SNAPSHOT = Snapshot(7, 1, sequence_number=5, parent_id=6, first_row_id=40)
VALUES = {
    "boolean": [True, False, None],
    "int": [-1, 2**31 - 1, None],
    "long": [-(2**63), 2**56, None],
    "float": [0.5, -2.0, None],
    "double": [0.1, 1e300, None],
    "decimal(9, 2)": [Decimal("-0.01"), Decimal("9999999.99"), None],
    "decimal(38, 0)": [Decimal(10**38 - 1), Decimal(1 - 10**38), None],
    "date": [date(1969, 12, 31), date(2026, 1, 1), None],
    "time": [time(0, 0, 1), time(23, 59), None],
    "timestamp": [-1, 10**15, None],
    "timestamptz": [-1, 10**15, None],
    "timestamp_ns": [-1, 10**18, None],
    "timestamptz_ns": [-1, 10**18, None],
    "string": ["", "Ünïcödé / =", None],
    "uuid": [bytes(16), bytes(range(16)), None],
    "fixed[3]": [b"abc", b"\x00\xff\x80", None],
    "binary": [b"", b"\xff" * 20, None],
}


def writer_of(*kinds: str, version: int = 3, names: tuple[str, ...] = (), **more: Any):
    fields = tuple(Field(n, f"c{n}", type_from_json(kind)) for n, kind in enumerate(kinds, 1))
    parts = tuple(
        PartitionField((n,), 999 + n, names[n - 1] if names else f"p{n}", "identity")
        for n in range(1, len(kinds) + 1)
    )
    spec = PartitionSpec(0, parts)
    metadata = TableMetadata(
        format_version=version,
        location="memory://t",
        last_updated_ms=1,
        last_column_id=99,
        schemas=(Schema(0, fields),),
        current_schema_id=0,
        partition_specs=(spec,),
        default_spec_id=0,
    )
    return ManifestWriter(metadata, spec, **more)


def entries_of(
    writer: ManifestWriter, partitions: list[tuple[Any, ...]], **columns: Any
) -> pa.Table:
    """Entries of added files with these partitions; ``columns`` replace those of all entries."""
    rows = len(partitions)
    schema = entry_schema(writer.partition)
    kind = schema.field("partition").type
    values = [
        pa.array([each[place] for each in partitions], field.type)
        for place, field in enumerate(kind)
    ]
    known = {
        "status": [ADDED] * rows,
        "spec_id": [0] * rows,
        "content": [0] * rows,
        "file_path": [f"memory://t/data/{number}.parquet" for number in range(rows)],
        "file_format": ["PARQUET"] * rows,
        "record_count": [10] * rows,
        "file_size_in_bytes": [900] * rows,
        **columns,
    }
    arrays = [
        pa.StructArray.from_arrays(values, fields=list(kind))
        if field.name == "partition"
        else pa.array(known.get(field.name, [None] * rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def read_again(writer: ManifestWriter, content: bytes, entries: pa.Table) -> pa.Table:
    class Places:
        uri = "memory://t"

        def read(self, address: str) -> bytes:
            return content

    row = writer.describe("m.avro", len(content), entries, SNAPSHOT)
    (found,) = read_entries(Places(), writer.metadata, row).values()
    return found


@pytest.mark.parametrize("kind", VALUES)
def test_a_partition_of_each_type_is_read_again(kind):
    writer = writer_of(kind)
    entries = entries_of(writer, [(each,) for each in VALUES[kind]])
    found = read_again(writer, writer.encode(entries), entries)
    assert found["partition"].to_pylist() == entries["partition"].to_pylist()


def test_two_partition_fields_may_have_one_named_type():
    """Avro allows the definition of a type once; the second field only names it."""
    kinds = ("decimal(9, 2)", "decimal(9, 2)", "uuid", "uuid")
    writer = writer_of(*kinds)
    entries = entries_of(writer, [tuple(VALUES[kind][1] for kind in kinds)])
    content = writer.encode(entries)
    assert len(list(fastavro.reader(io.BytesIO(content)))) == 1
    assert read_again(writer, content, entries)["partition"] == entries["partition"]


def test_names_that_avro_refuses_are_written_as_java_does():
    names = ("1st", "a-b", "größe")
    writer = writer_of("int", "int", "int", names=names)
    entries = entries_of(writer, [(1, 2, 3)])
    content = writer.encode(entries)
    file = fastavro.reader(io.BytesIO(content)).writer_schema["fields"][-1]["type"]
    fields = next(each for each in file["fields"] if each["name"] == "partition")["type"]["fields"]
    assert [each["name"] for each in fields] == ["_1st", "a_x2Db", "gr_xF6_xDFe"]
    assert [each["iceberg-field-name"] for each in fields] == list(names)
    assert read_again(writer, content, entries)["partition"] == entries["partition"]


def test_the_header_has_all_six_members():
    writer = writer_of("int", of_deletes=True)
    header = fastavro.reader(io.BytesIO(writer.encode(entries_of(writer, [])))).metadata
    assert json.loads(header["schema"])["fields"][0]["name"] == "c1"
    assert json.loads(header["partition-spec"]) == [
        {"source-id": 1, "field-id": 1000, "name": "p1", "transform": "identity"}
    ]
    wanted = {
        "schema-id": "0",
        "partition-spec-id": "0",
        "format-version": "3",
        "content": "deletes",
        "avro.codec": "deflate",
    }
    assert {key: header[key] for key in wanted} == wanted


def test_a_manifest_is_described_by_its_entries():
    writer = writer_of("double")
    entries = entries_of(
        writer,
        [(2.5,), (-0.0,), (math.nan,), (None,)],
        status=[ADDED, EXISTING, EXISTING, DELETED],
        sequence_number=[None, 3, 4, 1],
        record_count=[1, 2, 3, 4],
    )
    (row,) = writer.describe("m.avro", 5, entries, SNAPSHOT).to_pylist()
    assert row == {
        "manifest_path": "m.avro",
        "manifest_length": 5,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 5,
        "min_sequence_number": 3,  # a deleted file does not count
        "added_snapshot_id": 7,
        "added_files_count": 1,
        "existing_files_count": 2,
        "deleted_files_count": 1,
        "added_rows_count": 1,
        "existing_rows_count": 5,
        "deleted_rows_count": 4,
        "partitions": [
            {
                "contains_null": True,
                "contains_nan": True,
                "lower_bound": bytes(7) + b"\x80",
                "upper_bound": bytes(6) + b"\x04\x40",
            }
        ],
        "key_metadata": None,
        "first_row_id": None,
    }


def test_zero_as_a_bound_stands_for_both_zeros():
    writer = writer_of("double")
    for value in (0.0, -0.0):
        entries = entries_of(writer, [(value,)])
        (row,) = writer.describe("m", 0, entries, SNAPSHOT).to_pylist()
        (summary,) = row["partitions"]
        assert summary["lower_bound"] == bytes(7) + b"\x80"
        assert summary["upper_bound"] == bytes(8)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_manifest_list_has_the_fields_of_its_version(version):
    row = {name: 0 for name in MANIFEST_SCHEMA.names} | {
        "manifest_path": "m.avro",
        "partitions": [],
        "key_metadata": None,
    }
    listed = pa.Table.from_pylist([row], MANIFEST_SCHEMA)
    content = encode_manifest_list(version, listed, replace(SNAPSHOT, parent_id=None))
    reader = fastavro.reader(io.BytesIO(content))
    (found,) = reader
    assert ("content" in found, "first_row_id" in found) == (version > 1, version > 2)
    assert reader.metadata["parent-snapshot-id"] == "null"
    assert reader.metadata.get("first-row-id") == ("40" if version > 2 else None)
    assert reader.metadata.get("sequence-number") == ("5" if version > 1 else None)
