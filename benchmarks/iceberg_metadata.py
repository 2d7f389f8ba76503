"""Iceberg tables of given entries: metadata, manifest lists and manifests as Java writes them."""

from __future__ import annotations

import io
import json
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro

__all__ = ["Manifest", "PartitionColumn", "write_iceberg_table"]

SNAPSHOT_ID = 5_937_117_119_577_207_000
_MILLIS = 1_767_225_600_000


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One partition field; its values are numbers."""

    name: str
    source_id: int
    transform: str
    avro_type: Any = "int"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one manifest, each as a dict of the fields of its Avro record ``data_file``."""

    files: Sequence[Mapping[str, Any]]
    sequence_number: int = 1
    is_deletes: bool = False


def write_iceberg_table(
    folder: Path,
    columns: Mapping[str, str],
    partition: Sequence[PartitionColumn],
    manifests: Iterable[Manifest],
) -> None:
    """Write the metadata of a table of one snapshot; the location is the folder."""
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    location = f"file://{folder}"
    schema, spec = _schema(columns), _spec(partition)
    listed, last = [], 0
    for number, manifest in enumerate(manifests):
        name = f"metadata/{uuid.UUID(int=number)}-m{number}.avro"
        content = _manifest(manifest, schema, spec, partition)
        (folder / name).write_bytes(content)
        listed.append(_listed(f"{location}/{name}", len(content), manifest, partition))
        last = max(last, manifest.sequence_number)
    name = f"metadata/snap-{SNAPSHOT_ID}-1.avro"
    (folder / name).write_bytes(_avro(_LIST, listed, {}))
    metadata = _table_metadata(location, schema, spec, f"{location}/{name}", last)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))


def _manifest(
    manifest: Manifest,
    schema: Mapping[str, Any],
    spec: Sequence[Mapping[str, Any]],
    partition: Sequence[PartitionColumn],
) -> bytes:
    written = {
        "schema": json.dumps(schema),
        "schema-id": "0",
        "partition-spec": json.dumps(spec),
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "deletes" if manifest.is_deletes else "data",
    }
    entries = [
        {
            "status": 1,
            "snapshot_id": SNAPSHOT_ID,
            "sequence_number": None,
            "file_sequence_number": None,
            "data_file": {**_DEFAULTS, **file},
        }
        for file in manifest.files
    ]
    return _avro(_entry(partition), entries, written)


def _listed(
    path: str, size: int, manifest: Manifest, partition: Sequence[PartitionColumn]
) -> dict[str, Any]:
    number, files = manifest.sequence_number, manifest.files
    return {
        "manifest_path": path,
        "manifest_length": size,
        "partition_spec_id": 0,
        "content": int(manifest.is_deletes),
        "sequence_number": number,
        "min_sequence_number": number,
        "added_snapshot_id": SNAPSHOT_ID,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": sum(file["record_count"] for file in files),
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [
            _summary([file["partition"][each.name] for file in files]) for each in partition
        ],
    }


def _summary(values: Sequence[int]) -> dict[str, Any]:
    return {
        "contains_null": False,
        "contains_nan": False,
        "lower_bound": struct.pack("<i", min(values)),
        "upper_bound": struct.pack("<i", max(values)),
    }


def _avro(
    schema: Mapping[str, Any], records: Sequence[Mapping[str, Any]], metadata: Mapping[str, str]
) -> bytes:
    """Return an Avro file whose blocks have the size that Avro's Java library uses."""
    stream, parsed = io.BytesIO(), fastavro.parse_schema(dict(schema))
    fastavro.writer(
        stream,
        parsed,
        records,
        codec="deflate",
        codec_compression_level=9,
        sync_interval=64_000,
        metadata=dict(metadata),
    )
    return stream.getvalue()


def _table_metadata(
    location: str,
    schema: Mapping[str, Any],
    spec: Sequence[Mapping[str, Any]],
    manifest_list: str,
    last: int,
) -> dict[str, Any]:
    snapshot = {
        "snapshot-id": SNAPSHOT_ID,
        "sequence-number": last,
        "timestamp-ms": _MILLIS,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {
        "format-version": 2,
        "table-uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "location": location,
        "last-sequence-number": last,
        "last-updated-ms": _MILLIS,
        "last-column-id": len(schema["fields"]),
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": spec}],
        "default-spec-id": 0,
        "last-partition-id": 999 + len(spec),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": SNAPSHOT_ID,
        "refs": {"main": {"snapshot-id": SNAPSHOT_ID, "type": "branch"}},
        "snapshots": [snapshot],
        "snapshot-log": [{"snapshot-id": SNAPSHOT_ID, "timestamp-ms": _MILLIS}],
        "metadata-log": [],
    }


def _schema(columns: Mapping[str, str]) -> dict[str, Any]:
    fields = [
        {"id": number, "name": name, "required": False, "type": kind}
        for number, (name, kind) in enumerate(columns.items(), 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _spec(partition: Sequence[PartitionColumn]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "field-id": number,
            "source-id": each.source_id,
            "transform": each.transform,
        }
        for number, each in enumerate(partition, 1000)
    ]


def _fields(*fields: tuple[int, str, Any]) -> list[dict[str, Any]]:
    """Return Avro fields with their ids. A field whose type is a union gets the default null."""
    return [
        {"name": name, "type": kind, "field-id": field_id}
        | ({"default": None} if isinstance(kind, list) else {})
        for field_id, name, kind in fields
    ]


def _map(key_id: int, value: str) -> list[Any]:
    fields = _fields((key_id, "key", "int"), (key_id + 1, "value", value))
    item = {"type": "record", "name": f"k{key_id}_v{key_id + 1}", "fields": fields}
    return ["null", {"type": "array", "items": item, "logicalType": "map"}]


def _list(element_id: int, kind: str) -> list[Any]:
    return ["null", {"type": "array", "items": kind, "element-id": element_id}]


_FILE_FIELDS = (
    (103, "record_count", "long"),
    (104, "file_size_in_bytes", "long"),
    (108, "column_sizes", _map(117, "long")),
    (109, "value_counts", _map(119, "long")),
    (110, "null_value_counts", _map(121, "long")),
    (137, "nan_value_counts", _map(138, "long")),
    (125, "lower_bounds", _map(126, "bytes")),
    (128, "upper_bounds", _map(129, "bytes")),
    (131, "key_metadata", ["null", "bytes"]),
    (132, "split_offsets", _list(133, "long")),
    (135, "equality_ids", _list(136, "int")),
    (140, "sort_order_id", ["null", "int"]),
)
_DEFAULTS = {"content": 0, "file_format": "PARQUET", "partition": {}, "split_offsets": [4]}


def _entry(partition: Sequence[PartitionColumn]) -> dict[str, Any]:
    """Return the schema of entries."""
    parts = [
        (number, each.name, ["null", each.avro_type]) for number, each in enumerate(partition, 1000)
    ]
    file = _fields(
        (134, "content", "int"),
        (100, "file_path", "string"),
        (101, "file_format", "string"),
        (102, "partition", {"type": "record", "name": "r102", "fields": _fields(*parts)}),
        *_FILE_FIELDS,
    )
    fields = _fields(
        (0, "status", "int"),
        (1, "snapshot_id", ["null", "long"]),
        (3, "sequence_number", ["null", "long"]),
        (4, "file_sequence_number", ["null", "long"]),
        (2, "data_file", {"type": "record", "name": "r2", "fields": file}),
    )
    return {"type": "record", "name": "manifest_entry", "fields": fields}


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": _fields(
        (509, "contains_null", "boolean"),
        (518, "contains_nan", ["null", "boolean"]),
        (510, "lower_bound", ["null", "bytes"]),
        (511, "upper_bound", ["null", "bytes"]),
    ),
}
_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": _fields(
        (500, "manifest_path", "string"),
        (501, "manifest_length", "long"),
        (502, "partition_spec_id", "int"),
        (517, "content", "int"),
        (515, "sequence_number", "long"),
        (516, "min_sequence_number", "long"),
        (503, "added_snapshot_id", "long"),
        (504, "added_files_count", "int"),
        (505, "existing_files_count", "int"),
        (506, "deleted_files_count", "int"),
        (512, "added_rows_count", "long"),
        (513, "existing_rows_count", "long"),
        (514, "deleted_rows_count", "long"),
        (507, "partitions", ["null", {"type": "array", "items": _SUMMARY, "element-id": 508}]),
    ),
}
