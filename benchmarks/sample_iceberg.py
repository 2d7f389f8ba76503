"""Iceberg tables of metadata only, as Java writes it: 15 columns with all statistics."""

from __future__ import annotations

import io
import json
import random
import struct
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro

__all__ = ["BUCKETS", "COLUMNS", "DAYS", "FIRST_DAY", "ROWS_PER_FILE", "write_metadata_table"]

COLUMNS = {
    "id": "long",
    "event_time": "timestamptz",
    "user_id": "long",
    "country": "string",
    "city": "string",
    "device": "string",
    "session": "string",
    "url": "string",
    "referrer": "string",
    "price": "double",
    "score": "float",
    "quantity": "int",
    "amount": "decimal(12, 2)",
    "active": "boolean",
    "updated": "date",
}
FIRST_DAY, DAYS = 20_000, 365
BUCKETS = 16
ROWS_PER_FILE = 100_000
FILES_PER_MANIFEST = 20_000
"""About 8 MB of Java's manifests."""
_DAY_MICROS = 86_400_000_000
_SNAPSHOT_ID = 5_937_117_119_577_207_000
_TEXT_BOUND = 16
_PARTITION = (("event_time_day", 1000, 2, "day"), ("id_bucket", 1001, 1, f"bucket[{BUCKETS}]"))


def write_metadata_table(folder: Path, count: int) -> None:
    """Write a table of one snapshot with entries of data files that do not exist.

    Files follow each other by day; those of a day are spread over the buckets.
    """
    (folder / "metadata").mkdir(parents=True)
    location, chance = f"file://{folder}", random.Random(7)
    listed = []
    for first in range(0, count, FILES_PER_MANIFEST):
        numbers = range(first, min(first + FILES_PER_MANIFEST, count))
        entries = [_entry(location, number, count, chance) for number in numbers]
        path = f"{location}/metadata/{uuid.UUID(int=chance.getrandbits(128))}-m{len(listed)}.avro"
        content = _avro(_ENTRY, entries, _MANIFEST_METADATA)
        (folder / path.removeprefix(f"{location}/")).write_bytes(content)
        days = [entry["data_file"]["partition"]["event_time_day"] for entry in entries]
        listed.append(_listed(path, len(content), len(entries), (min(days), max(days))))
    name = f"metadata/snap-{_SNAPSHOT_ID}-1.avro"
    (folder / name).write_bytes(_avro(_LIST, listed, {}))
    metadata = _table_metadata(location, f"{location}/{name}")
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))


def _entry(location: str, number: int, count: int, chance: random.Random) -> dict[str, Any]:
    day, bucket = FIRST_DAY + number * DAYS // count, number % BUCKETS
    name = f"00000-{number}-{uuid.UUID(int=chance.getrandbits(128))}-00001.parquet"
    return {
        "status": 1,
        "snapshot_id": _SNAPSHOT_ID,
        "sequence_number": None,
        "file_sequence_number": None,
        "data_file": {
            "content": 0,
            "file_path": f"{location}/data/event_time_day={day}/id_bucket={bucket}/{name}",
            "file_format": "PARQUET",
            "partition": {"event_time_day": day, "id_bucket": bucket},
            "record_count": ROWS_PER_FILE,
            "file_size_in_bytes": chance.randrange(10**6, 10**8),
            **_statistics(number, day, chance),
            "key_metadata": None,
            "split_offsets": [4],
            "equality_ids": None,
            "sort_order_id": 0,
        },
    }


def _statistics(number: int, day: int, chance: random.Random) -> dict[str, Any]:
    ids = range(1, len(COLUMNS) + 1)
    bounds = [_bounds(kind, number, day, chance) for kind in COLUMNS.values()]
    floats = [each for each, kind in zip(ids, COLUMNS.values(), strict=True) if kind in _FLOATS]
    return {
        "column_sizes": _pairs({each: chance.randrange(10**3, 10**6) for each in ids}),
        "value_counts": _pairs(dict.fromkeys(ids, ROWS_PER_FILE)),
        "null_value_counts": _pairs({each: chance.randrange(100) for each in ids}),
        "nan_value_counts": _pairs(dict.fromkeys(floats, 0)),
        "lower_bounds": _pairs({each: low for each, (low, _) in zip(ids, bounds, strict=True)}),
        "upper_bounds": _pairs({each: high for each, (_, high) in zip(ids, bounds, strict=True)}),
    }


def _bounds(kind: str, number: int, day: int, chance: random.Random) -> tuple[bytes, bytes]:
    """Return the least and the largest value of a column in one file."""
    if kind == "string":
        texts = sorted(f"{chance.getrandbits(64):016x}"[:_TEXT_BOUND] for _ in range(2))
        return texts[0].encode(), texts[1].encode()
    if kind == "boolean":
        return b"\0", b"\1"
    if kind.startswith("decimal"):
        low, high = sorted(chance.randrange(10**9) for _ in range(2))
        return low.to_bytes(5, "big"), high.to_bytes(5, "big")
    if kind == "timestamptz":
        return struct.pack("<q", day * _DAY_MICROS), struct.pack("<q", (day + 1) * _DAY_MICROS - 1)
    if kind in _FLOATS:
        code, low, high = _FLOATS[kind], *sorted(chance.random() * 1000 for _ in range(2))
        return struct.pack(code, low), struct.pack(code, high)
    if kind == "long":
        return (
            struct.pack("<q", number * ROWS_PER_FILE),
            struct.pack("<q", (number + 1) * ROWS_PER_FILE - 1),
        )
    return struct.pack("<i", day - chance.randrange(9)), struct.pack("<i", day)


_FLOATS = {"double": "<d", "float": "<f"}


def _pairs(values: Mapping[int, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _listed(path: str, size: int, files: int, days: tuple[int, int]) -> dict[str, Any]:
    buckets = (0, BUCKETS - 1)
    return {
        "manifest_path": path,
        "manifest_length": size,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 1,
        "min_sequence_number": 1,
        "added_snapshot_id": _SNAPSHOT_ID,
        "added_files_count": files,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": files * ROWS_PER_FILE,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [
            {
                "contains_null": False,
                "contains_nan": False,
                "lower_bound": struct.pack("<i", low),
                "upper_bound": struct.pack("<i", high),
            }
            for low, high in (days, buckets)
        ],
    }


def _avro(
    schema: Mapping[str, Any], records: Sequence[Mapping[str, Any]], metadata: Mapping[str, str]
) -> bytes:
    """Return a file with blocks of the size that Java's library gives them."""
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


def _table_metadata(location: str, manifest_list: str) -> dict[str, Any]:
    snapshot = {
        "snapshot-id": _SNAPSHOT_ID,
        "sequence-number": 1,
        "timestamp-ms": 1_767_225_600_000,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {
        "format-version": 2,
        "table-uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "location": location,
        "last-sequence-number": 1,
        "last-updated-ms": 1_767_225_600_000,
        "last-column-id": len(COLUMNS),
        "schemas": [_SCHEMA],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": _SPEC}],
        "default-spec-id": 0,
        "last-partition-id": 1001,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": _SNAPSHOT_ID,
        "refs": {"main": {"snapshot-id": _SNAPSHOT_ID, "type": "branch"}},
        "snapshots": [snapshot],
        "snapshot-log": [{"snapshot-id": _SNAPSHOT_ID, "timestamp-ms": 1_767_225_600_000}],
        "metadata-log": [],
    }


_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": number, "name": name, "required": False, "type": kind}
        for number, (name, kind) in enumerate(COLUMNS.items(), 1)
    ],
}
_SPEC = [
    {"name": name, "field-id": field_id, "source-id": source_id, "transform": transform}
    for name, field_id, source_id, transform in _PARTITION
]
_MANIFEST_METADATA = {
    "schema": json.dumps(_SCHEMA),
    "schema-id": "0",
    "partition-spec": json.dumps(_SPEC),
    "partition-spec-id": "0",
    "format-version": "2",
    "content": "data",
}


def _fields(*fields: tuple[int, str, Any]) -> list[dict[str, Any]]:
    """Return fields with their ids; those of a union with null have null as their default."""
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


_DAY = {"type": "int", "logicalType": "date"}
_PARTITION_RECORD = {
    "type": "record",
    "name": "r102",
    "fields": _fields(
        (1000, "event_time_day", ["null", _DAY]), (1001, "id_bucket", ["null", "int"])
    ),
}
_DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": _fields(
        (134, "content", "int"),
        (100, "file_path", "string"),
        (101, "file_format", "string"),
        (102, "partition", _PARTITION_RECORD),
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
    ),
}
_ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": _fields(
        (0, "status", "int"),
        (1, "snapshot_id", ["null", "long"]),
        (3, "sequence_number", ["null", "long"]),
        (4, "file_sequence_number", ["null", "long"]),
        (2, "data_file", _DATA_FILE),
    ),
}
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
