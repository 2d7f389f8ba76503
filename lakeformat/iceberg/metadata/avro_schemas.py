# SPDX-License-Identifier: Apache-2.0
"""The Avro schemas of manifests and manifest lists in each format version.

Fields are in the order that Iceberg's Java library writes, with the ids by which readers find them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.types import Field, PrimitiveType, StructType

__all__ = ["BLOCK_SIZE", "avro_name", "list_schema", "manifest_schema"]

BLOCK_SIZE = "block_size_in_bytes"
"""A field that version 1 requires, although no reader uses it."""

_NEWEST = 3
_UNFIT = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class _Declared:
    """A field, the format versions that have it, and the versions that require it."""

    id: int
    name: str
    type: Any
    since: int = 1
    until: int = _NEWEST
    required_since: int = _NEWEST + 1

    def avro(self, version: int) -> dict[str, Any]:
        if version >= self.required_since:
            return {"name": self.name, "type": self.type, "field-id": self.id}
        return _optional(self.id, self.name, self.type)


def _optional(field_id: int, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _record(name: str, fields: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [*fields]}


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    pair = [
        {"name": "key", "type": "int", "field-id": key_id},
        {"name": "value", "type": value, "field-id": value_id},
    ]
    items = _record(f"k{key_id}_v{value_id}", pair)
    return {"type": "array", "items": items, "logicalType": "map"}


def _list(element_id: int, element: Any) -> dict[str, Any]:
    return {"type": "array", "items": element, "element-id": element_id}


_SUMMARY = _record(
    "r508",
    [
        {"name": "contains_null", "type": "boolean", "field-id": 509},
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
)
_LIST = (
    _Declared(500, "manifest_path", "string", required_since=1),
    _Declared(501, "manifest_length", "long", required_since=1),
    _Declared(502, "partition_spec_id", "int", required_since=1),
    _Declared(517, "content", "int", since=2, required_since=2),
    _Declared(515, "sequence_number", "long", since=2, required_since=2),
    _Declared(516, "min_sequence_number", "long", since=2, required_since=2),
    _Declared(503, "added_snapshot_id", "long", required_since=1),
    _Declared(504, "added_files_count", "int", required_since=2),
    _Declared(505, "existing_files_count", "int", required_since=2),
    _Declared(506, "deleted_files_count", "int", required_since=2),
    _Declared(512, "added_rows_count", "long", required_since=2),
    _Declared(513, "existing_rows_count", "long", required_since=2),
    _Declared(514, "deleted_rows_count", "long", required_since=2),
    _Declared(507, "partitions", _list(508, _SUMMARY)),
    _Declared(519, "key_metadata", "bytes"),
    _Declared(520, "first_row_id", "long", since=3),
)
_ENTRY = (
    _Declared(0, "status", "int", required_since=1),
    _Declared(1, "snapshot_id", "long"),
    _Declared(3, "sequence_number", "long", since=2),
    _Declared(4, "file_sequence_number", "long", since=2),
)
_BEFORE_PARTITION = (
    _Declared(134, "content", "int", since=2, required_since=2),
    _Declared(100, "file_path", "string", required_since=1),
    _Declared(101, "file_format", "string", required_since=1),
)
_AFTER_PARTITION = (
    _Declared(103, "record_count", "long", required_since=1),
    _Declared(104, "file_size_in_bytes", "long", required_since=1),
    _Declared(105, BLOCK_SIZE, "long", until=1, required_since=1),
    _Declared(108, "column_sizes", _map(117, 118, "long")),
    _Declared(109, "value_counts", _map(119, 120, "long")),
    _Declared(110, "null_value_counts", _map(121, 122, "long")),
    _Declared(137, "nan_value_counts", _map(138, 139, "long")),
    _Declared(125, "lower_bounds", _map(126, 127, "bytes")),
    _Declared(128, "upper_bounds", _map(129, 130, "bytes")),
    _Declared(131, "key_metadata", "bytes"),
    _Declared(132, "split_offsets", _list(133, "long")),
    _Declared(135, "equality_ids", _list(136, "int"), since=2),
    _Declared(140, "sort_order_id", "int"),
    _Declared(142, "first_row_id", "long", since=3),
    _Declared(143, "referenced_data_file", "string", since=2),
    _Declared(144, "content_offset", "long", since=3),
    _Declared(145, "content_size_in_bytes", "long", since=3),
)


def list_schema(version: int) -> dict[str, Any]:
    """Return the schema of the manifest lists of a format version."""
    return _record("manifest_file", _of_version(_LIST, version))


def manifest_schema(version: int, partition: StructType) -> dict[str, Any]:
    """Return the schema of the manifests of a format version, for one type of partition values.

    Raise ``UnsupportedError`` for a partition field whose type manifests cannot store.
    """
    named: set[str] = set()
    values = [_partition_field(field, named) for field in partition.fields]
    file = _record(
        "r2",
        [
            *_of_version(_BEFORE_PARTITION, version),
            {"name": "partition", "type": _record("r102", values), "field-id": 102},
            *_of_version(_AFTER_PARTITION, version),
        ],
    )
    entry = [*_of_version(_ENTRY, version), {"name": "data_file", "type": file, "field-id": 2}]
    return _record("manifest_entry", entry)


def _of_version(declared: Iterable[_Declared], version: int) -> list[dict[str, Any]]:
    return [each.avro(version) for each in declared if each.since <= version <= each.until]


def avro_name(name: str) -> str:
    """Return the name of a partition field in manifests, without the characters that Avro forbids.

    Two names can become the same.
    """
    fit = _UNFIT.sub(lambda found: f"_x{ord(found[0]):X}", name)
    return f"_{fit}" if fit[:1].isdigit() else fit


def _partition_field(field: Field, named: set[str]) -> dict[str, Any]:
    """Return the schema of a partition field; a name that Avro forbids is changed as in Java."""
    if not isinstance(field.type, PrimitiveType):
        raise UnsupportedError(
            f"the partition field {field.name!r} has the type {field.type}, and manifests store "
            "only single values: drop the field from the partition spec in Spark"
        )
    fit = avro_name(field.name)
    declared = _optional(field.id, fit, _value_type(field.name, field.type, named))
    return declared if fit == field.name else {**declared, "iceberg-field-name": field.name}


def _value_type(field: str, kind: PrimitiveType, named: set[str]) -> Any:
    """Return the schema of a partition value.

    Avro declares a named type only once. If its name is already in ``named``, return only the
    name; otherwise add the name to ``named``.
    """
    declared = _TYPES.get(kind.name) or _fixed_type(field, kind)
    name = declared.get("name") if isinstance(declared, dict) else None
    if name is None:
        return declared
    if name in named:
        return name
    named.add(name)
    return declared


def _fixed_type(field: str, kind: PrimitiveType) -> dict[str, Any]:
    if kind.name == "fixed":
        return {"type": "fixed", "name": f"fixed_{kind.length}", "size": kind.length}
    if kind.name != "decimal":
        raise UnsupportedError(
            f"the partition field {field!r} has the type {kind}, which manifests cannot store: "
            "drop the field from the partition spec in Spark"
        )
    digits = {"precision": kind.precision, "scale": kind.scale}
    name, size = f"decimal_{kind.precision}_{kind.scale}", _decimal_size(kind.precision)
    return {"type": "fixed", "name": name, "size": size, "logicalType": "decimal", **digits}


def _decimal_size(precision: int) -> int:
    largest: int = 10**precision
    return (largest.bit_length() + 8) // 8


def _logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


_ADJUSTED = "adjust-to-utc"
_TYPES: dict[str, Any] = {
    **{name: name for name in ("boolean", "int", "long", "float", "double", "string")},
    "binary": "bytes",
    "date": _logical("int", "date"),
    "time": _logical("long", "time-micros"),
    "timestamp": _logical("long", "timestamp-micros", **{_ADJUSTED: False}),
    "timestamptz": _logical("long", "timestamp-micros", **{_ADJUSTED: True}),
    "timestamp_ns": _logical("long", "timestamp-nanos", **{_ADJUSTED: False}),
    "timestamptz_ns": _logical("long", "timestamp-nanos", **{_ADJUSTED: True}),
    "uuid": {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
}
