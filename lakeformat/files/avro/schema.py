# SPDX-License-Identifier: Apache-2.0
"""Converts the Avro schema of a data file to Arrow types and to a schema without logical types.

A logical type describes the meaning of a value, not its storage. Paimon's Java library declares
TIMESTAMP as ``timestamp-…`` and TIMESTAMP_LTZ as ``local-timestamp-…``, so the declared meaning is
wrong. Values are therefore read as they are stored, and the schema of the table gives their
meaning. The ids that Iceberg gives to fields, elements, keys and values become metadata of the
Arrow fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = ["AvroColumn", "avro_columns", "plain_record"]

ROOT = "record"
_ATOMIC = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_MEANT = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """A field of a record: its Avro type without logical types, and its Arrow type."""

    name: str
    plain: Any
    arrow: pa.DataType
    id: int | None = None
    """The field id of the column; None if the file has none."""

    @property
    def field(self) -> pa.Field:
        """The Arrow field of the column, with the id as metadata."""
        return _with_id(self.name, self.arrow, self.id)


def avro_columns(schema: Any) -> list[AvroColumn]:
    """Return the columns that the schema of a file declares.

    Raise ``ValueError`` if the schema is not a record, or has a type that no data file has.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "record":
        raise ValueError("its schema is not a record")
    return _Translation().fields(schema)


def plain_record(columns: list[AvroColumn]) -> dict[str, Any]:
    """Return the Avro schema of a record of ``columns``, without logical types."""
    fields = [{"name": column.name, "type": column.plain} for column in columns]
    return {"type": "record", "name": ROOT, "fields": fields}


class _Translation:
    """Translates types. Each nested record or fixed type gets a new name, because a file may use
    one name twice.
    """

    def __init__(self) -> None:
        self._records = 0

    def fields(self, record: Mapping[str, Any]) -> list[AvroColumn]:
        found = [self._field(field) for field in record["fields"]]
        if not found:
            raise ValueError("its schema has a record without fields")
        return found

    def _field(self, field: Mapping[str, Any]) -> AvroColumn:
        plain, arrow = self._type(field["type"])
        return AvroColumn(str(field["name"]), plain, arrow, field.get("field-id"))

    def _type(self, declared: Any) -> tuple[Any, pa.DataType]:
        if isinstance(declared, list):
            return self._union(declared)
        if isinstance(declared, str):
            return declared, _atomic(declared, None)
        kind = declared["type"]
        if not isinstance(kind, str):
            return self._type(kind)
        if kind == "record":
            return self._record(self.fields(declared))
        if kind == "array":
            return self._array(declared)
        if kind == "map":
            pairs = [AvroColumn("key", "string", pa.string(), declared.get("key-id"))]
            value = {"name": "value", "type": declared["values"]}
            pairs.append(self._field({**value, "field-id": declared.get("value-id")}))
            plain, arrow = self._record(pairs)
            return {"type": "array", "items": plain}, pa.list_(arrow)
        if kind == "fixed":
            size = int(declared["size"])
            return {**self._named("fixed"), "size": size}, pa.binary(size)
        return kind, _atomic(kind, declared.get("logicalType"))

    def _union(self, branches: list[Any]) -> tuple[Any, pa.DataType]:
        """Translate the union of null and one type. Raise ``ValueError`` for any other union."""
        present = [branch for branch in branches if branch != "null"]
        if len(present) != 1:
            raise ValueError(f"its schema has a union of {len(present)} types besides null")
        plain, arrow = self._type(present[0])
        return ["null" if branch == "null" else plain for branch in branches], arrow

    def _array(self, declared: Mapping[str, Any]) -> tuple[Any, pa.DataType]:
        plain, arrow = self._type(declared["items"])
        element = _with_id("item", arrow, declared.get("element-id"))
        return {"type": "array", "items": plain}, pa.list_(element)

    def _record(self, columns: list[AvroColumn]) -> tuple[Any, pa.DataType]:
        fields = [{"name": column.name, "type": column.plain} for column in columns]
        arrow = pa.struct([column.field for column in columns])
        return {**self._named("record"), "fields": fields}, arrow

    def _named(self, kind: str) -> dict[str, Any]:
        self._records += 1
        return {"type": kind, "name": f"{ROOT}{self._records}"}


def _with_id(name: str, arrow: pa.DataType, field_id: int | None) -> pa.Field:
    metadata = None if field_id is None else {"field-id": str(field_id)}
    return pa.field(name, arrow, metadata=metadata)


def _atomic(kind: str, logical: Any) -> pa.DataType:
    found = _MEANT.get((kind, logical)) or _ATOMIC.get(kind)
    if found is None:
        raise ValueError(f"its schema has the Avro type {kind!r}, which no column of a table has")
    return found
