"""A small table in a directory, made of any manifest entries, also of those no writer writes."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import lakeformat as lake

SNAPSHOT_ID = 7
_STATISTICS = {
    "null_value_counts": (110, 121, "long"),
    "lower_bounds": (125, 126, "bytes"),
    "upper_bounds": (128, 129, "bytes"),
}
_DELETE_MEMBERS = {
    "equality_ids": (135, {"type": "array", "items": "int"}),
    "referenced_data_file": (143, "string"),
    "content_offset": (144, "long"),
    "content_size_in_bytes": (145, "long"),
}


class MadeTable:
    """A table of one snapshot; ``schemas`` are lists of types by (id, name).

    ``partition`` is the id of a column, its name, the type of partitions in Avro, and the
    transform.
    """

    def __init__(
        self,
        root: Path,
        *schemas: dict[tuple[int, str], Any],
        partition: tuple[int, str, Any, str] | None = None,
        **members: Any,
    ) -> None:
        self.root = root
        self.location = f"file://{root}"
        (root / "metadata").mkdir(parents=True)
        self._schemas = schemas
        self._partition = partition
        self._members = members
        self._manifests: list[dict[str, Any]] = []
        self._earlier: list[dict[str, Any]] = []

    def write(self, name: str, **columns: tuple[int, pa.Array]) -> str:
        """Write a Parquet file of columns with their field ids, and return its address."""
        fields = [
            pa.field(column, values.type, metadata={"PARQUET:field_id": str(field_id)})
            for column, (field_id, values) in columns.items()
        ]
        arrays = [values for _, values in columns.values()]
        pq.write_table(pa.table(arrays, schema=pa.schema(fields)), self.root / name)
        return f"{self.location}/{name}"

    def manifest(self, *entries: dict[str, Any], number: int = 1, **listed: Any) -> None:
        """Add a manifest of entries, each of members of its file, to the list of manifests."""
        name = f"m{len(self._manifests)}.avro"
        records = [
            {"status": 1, "snapshot_id": None, "sequence_number": None, "data_file": _file(each)}
            for each in entries
        ]
        (self.root / "metadata" / name).write_bytes(_avro(self._entry_schema(), records))
        described = {
            "manifest_path": f"{self.location}/metadata/{name}",
            "partition_spec_id": 0,
            "content": int(any(each.get("content", 0) for each in entries)),
            "sequence_number": number,
            "min_sequence_number": number,
            "added_snapshot_id": SNAPSHOT_ID,
            "added_files_count": len(entries),
            "existing_files_count": 0,
            "partitions": None,
        }
        self._manifests.append(described | listed)

    def earlier(self, snapshot_id: int, number: int = 1) -> None:
        """Add an earlier snapshot with the manifests so far."""
        self._earlier.append(self._snapshot(snapshot_id, number, "append", 0))

    def commit(self, schema_id: int = 0, operation: str = "append") -> Any:
        """Write the list of manifests and the metadata; return the opened table."""
        parts = [] if self._partition is None else [self._partition]
        snapshot = self._snapshot(SNAPSHOT_ID, 9, operation, schema_id)
        metadata = {
            "format-version": 3,
            "table-uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
            "location": self.location,
            "last-sequence-number": 9,
            "last-updated-ms": 1,
            "last-column-id": 99,
            "schemas": [_schema(place, each) for place, each in enumerate(self._schemas)],
            "current-schema-id": len(self._schemas) - 1,
            "partition-specs": [{"spec-id": 0, "fields": [_spec_field(each) for each in parts]}],
            "default-spec-id": 0,
            "last-partition-id": 1000,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "next-row-id": 100,
            "current-snapshot-id": SNAPSHOT_ID,
            "snapshots": [*self._earlier, snapshot],
            **self._members,
        }
        (self.root / "metadata/v1.metadata.json").write_text(json.dumps(metadata))
        return lake.open_table(str(self.root))

    def _snapshot(
        self, snapshot_id: int, number: int, operation: str, schema_id: int
    ) -> dict[str, Any]:
        """Write a list of the manifests so far."""
        listed = f"metadata/snap-{snapshot_id}.avro"
        (self.root / listed).write_bytes(_avro(_LIST, self._manifests))
        parent = self._earlier[-1]["snapshot-id"] if self._earlier else None
        return {
            "parent-snapshot-id": parent,
            "snapshot-id": snapshot_id,
            "sequence-number": number,
            "timestamp-ms": 1,
            "manifest-list": f"{self.location}/{listed}",
            "summary": {"operation": operation},
            "schema-id": schema_id,
        }

    def _entry_schema(self) -> dict[str, Any]:
        parts = []
        if self._partition is not None:
            _, name, kind, _ = self._partition
            parts = [_field(1000, name, ["null", kind])]
        maps = {
            name: (field_id, _map(key, value))
            for name, (field_id, key, value) in _STATISTICS.items()
        }
        file = _record(
            "r2",
            _field(134, "content", "int"),
            _field(100, "file_path", "string"),
            _field(101, "file_format", "string"),
            _field(102, "partition", _record("r102", *parts)),
            _field(103, "record_count", "long"),
            _field(104, "file_size_in_bytes", "long"),
            *(
                _field(field_id, name, ["null", kind])
                for name, (field_id, kind) in (maps | _DELETE_MEMBERS).items()
            ),
        )
        return _record(
            "manifest_entry",
            _field(0, "status", "int"),
            _field(1, "snapshot_id", ["null", "long"]),
            _field(3, "sequence_number", ["null", "long"]),
            _field(2, "data_file", file),
        )


def _field(field_id: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": field_id}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _map(key_id: int, kind: str) -> dict[str, Any]:
    entry = _record(f"k{key_id}", _field(key_id, "key", "int"), _field(key_id + 1, "value", kind))
    return {"type": "array", "items": entry}


_SUMMARY = _record(
    "r508",
    _field(509, "contains_null", "boolean"),
    _field(510, "lower_bound", ["null", "bytes"]),
    _field(511, "upper_bound", ["null", "bytes"]),
)
_LIST = _record(
    "manifest_file",
    _field(500, "manifest_path", "string"),
    _field(502, "partition_spec_id", "int"),
    _field(517, "content", "int"),
    _field(515, "sequence_number", "long"),
    _field(516, "min_sequence_number", "long"),
    _field(503, "added_snapshot_id", "long"),
    _field(504, "added_files_count", "int"),
    _field(505, "existing_files_count", "int"),
    _field(507, "partitions", ["null", {"type": "array", "items": _SUMMARY}]),
)


def _avro(schema: dict[str, Any], records: Sequence[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(schema), records)
    return stream.getvalue()


def _file(members: dict[str, Any]) -> dict[str, Any]:
    maps = {
        name: [{"key": key, "value": value} for key, value in members[name].items()]
        for name in _STATISTICS
        if name in members
    }
    plain = {"content": 0, "file_format": "PARQUET", "partition": {}, "file_size_in_bytes": 9}
    return plain | members | maps


def _schema(schema_id: int, columns: dict[tuple[int, str], Any]) -> dict[str, Any]:
    fields = [
        {"id": field_id, "name": name, "required": False, "type": kind}
        for (field_id, name), kind in columns.items()
    ]
    return {"type": "struct", "schema-id": schema_id, "fields": fields}


def _spec_field(partition: tuple[int, str, Any, str]) -> dict[str, Any]:
    source_id, name, _, transform = partition
    return {"source-id": source_id, "field-id": 1000, "name": name, "transform": transform}
