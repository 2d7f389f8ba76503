# SPDX-License-Identifier: Apache-2.0
"""Converts Paimon schemas to Iceberg schemas, with the same ids for schemas and fields.

Elements of arrays and maps get the ids that the data files store for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.files.field_ids import parquet_schema
from lakeformat.iceberg.partition_spec import FIRST_FIELD_ID, PartitionField, PartitionSpec
from lakeformat.iceberg.schema import Schema, named_fields
from lakeformat.iceberg.types import (
    Field,
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    Type,
    inner_fields,
)
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.type_kinds import type_text
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MultisetType,
    RowType,
    TypeName,
)
from lakeformat.types.types import MapType as PaimonMap

__all__ = [
    "iceberg_schema",
    "iceberg_spec",
    "last_column_id",
    "require_promotions",
    "require_readable_before",
    "shown_before",
]

_ID = b"PARQUET:field_id"
_KEY_COLUMNS = 1_073_741_823
"""In files of primary-key tables, the copy of a key column has the id of the column plus this
number.
"""
_MOST_MICROS = 6
_HAS_NANOS = 3
"""The first format version of Iceberg with times in nanoseconds."""
_PLAIN = {
    TypeName.BOOLEAN: "boolean",
    TypeName.TINYINT: "int",
    TypeName.SMALLINT: "int",
    TypeName.INT: "int",
    TypeName.BIGINT: "long",
    TypeName.FLOAT: "float",
    TypeName.DOUBLE: "double",
    TypeName.DATE: "date",
    TypeName.CHAR: "string",
    TypeName.VARCHAR: "string",
    TypeName.BINARY: "binary",
    TypeName.VARBINARY: "binary",
}
_TIMES = {TypeName.TIMESTAMP: "timestamp", TypeName.TIMESTAMP_LTZ: "timestamptz"}
_AFTERWARDS = "copy the rows to a new table, or set 'metadata.iceberg.storage' to 'disabled'"
"""The advice if an earlier schema has a type that Iceberg readers cannot follow."""
_PROMOTED = {("int", "long"), ("float", "double")}


def iceberg_schema(schema: TableSchema, version: int) -> Schema:
    """Return the Iceberg schema of a Paimon schema in a version of Iceberg's format.

    Raise ``UnsupportedError``, with the name of the column, if Iceberg readers cannot read its
    type or its name.
    """
    for field in schema.fields:
        for part in _unreadable_parts(field.name, field.type, version):
            raise _refused(part)
    fields = tuple(map(_field, schema.fields, parquet_schema(schema.fields)))
    _require_names(schema.id, fields)
    by_name = {field.name: field for field in fields}
    keys = [by_name[name] for name in schema.primary_keys]
    can_identify = all(each.required and str(each.type) not in ("float", "double") for each in keys)
    return Schema(schema.id, fields, tuple(each.id for each in keys) if can_identify else ())


def shown_before(schema: TableSchema, newest: TableSchema, version: int) -> TableSchema:
    """Return an earlier schema without columns that Iceberg readers cannot read.

    If ``schema`` is the newest schema, return it unchanged. In an earlier schema, leave out dropped
    columns with an unreadable type. Also leave out a nested column if one of its fields has the
    full name of another column or field. So a table can be published after such a column was
    dropped or renamed.
    """
    if schema.id == newest.id:
        return schema
    alive = {field.id for field in newest.fields}
    readable = {each.id for each in schema.fields if _is_readable(each, version)}
    clashing = _clashing([each for each in schema.fields if each.id in readable])
    shown = (readable | alive) - clashing
    return replace(schema, fields=tuple(each for each in schema.fields if each.id in shown))


def require_readable_before(schema: TableSchema, newest: TableSchema, version: int) -> None:
    """Raise ``UnsupportedError`` if a column of an earlier schema had a type that Iceberg readers
    cannot read, and has another type in the newest schema.
    """
    now = {field.id: field for field in newest.fields}
    for field in schema.fields:
        changed = now.get(field.id, field)
        part = next(_unreadable_parts(changed.name, field.type, version), None)
        if changed.type != field.type and part is not None:
            raise UnsupportedError(
                f"column {part.column!r} has the type {type_text(part.type)} in schema "
                f"{schema.id}, which cannot be published as Iceberg metadata. Readers need all "
                f"earlier schemas, so a change of the type does not help: {_AFTERWARDS}"
            )


def iceberg_spec(schema: TableSchema) -> PartitionSpec:
    """Return the partition spec of a table: an identity field for each partition column."""
    fields = (
        PartitionField((field.id,), FIRST_FIELD_ID + place, field.name, "identity")
        for place, field in enumerate(partition_fields(schema))
    )
    return PartitionSpec(0, tuple(fields))


def last_column_id(schemas: Sequence[Schema], newest: TableSchema) -> int:
    """Return the highest id of a column in the schemas and in the data files of a table.

    Files of a table with a primary key have copies of the key columns, which have ids of their own.
    ClickHouse refuses a file with an id above the ``last-column-id`` of the metadata.
    """
    ids = [number for schema in schemas for number in _ids(schema.struct)]
    keys = [_KEY_COLUMNS + field.id for field in newest.key_fields]
    return max([*ids, *keys], default=0)


def require_promotions(older: Schema, newer: Schema) -> None:
    """Raise ``UnsupportedError`` if the type of a column changed from ``older`` to ``newer`` in a
    way that Iceberg does not allow.
    """
    before = dict(_leaves(older.struct))
    for number, kind in _leaves(newer.struct):
        was = before.get(number, kind)
        if was != kind and not _is_promotion(was, kind):
            raise UnsupportedError(
                f"column {newer.name_of(number)!r} changes from {was} to {kind} in schema "
                f"{newer.schema_id}, but Iceberg readers cannot convert the values in older files. "
                "Add a column of the new type instead. If the type has changed already, "
                f"{_AFTERWARDS}"
            )


def _require_names(schema_id: int, fields: tuple[Field, ...]) -> None:
    """Raise ``UnsupportedError`` if two fields have the same dotted name."""
    columns: dict[str, str] = {}
    for field in fields:
        for name in _full_names(field):
            if name in columns:
                both = f"columns {columns[name]!r} and {field.name!r} both have a field"
                inside = f"column {field.name!r} has two fields"
                raise UnsupportedError(
                    f"{inside if columns[name] == field.name else both} with the full name "
                    f"{name!r} in schema {schema_id}, and readers of Iceberg refuse such a schema. "
                    "Rename one of these fields. If the table has rows, rewrite its files "
                    "afterwards, because some readers refuse the older files: scan = table.scan(), "
                    "then table.write(scan.to_arrow(), overwrite='table', "
                    "read_snapshot=scan.snapshot_id)"
                )
            columns[name] = field.name


def _clashing(fields: Sequence[DataField]) -> set[int]:
    """Return the ids of columns to leave out, so that no two fields have the same full name.

    For example, a ROW ``a`` with a field ``b`` clashes with a column ``a.b``. Then the column with
    the shorter name, ``a``, is left out. Such a column is nested, so it is never a key or a
    partition column.
    """
    taken: set[str] = set()
    found = set()
    longest_first = sorted(fields, key=lambda field: len(field.name), reverse=True)
    for field in map(_field, longest_first, parquet_schema(tuple(longest_first))):
        names = _full_names(field)
        if len(names) > len({*names} - taken):
            found.add(field.id)
        else:
            taken.update(names)
    return found


def _full_names(field: Field) -> list[str]:
    return [name for name, _ in named_fields(StructType((field,)))]


def _field(field: DataField, numbered: pa.Field) -> Field:
    kind = _type(field.type, numbered.type)
    return Field(field.id, field.name, kind, not field.type.nullable, field.description)


def _type(kind: DataType, numbered: pa.DataType) -> Type:
    match kind:
        case AtomicType():
            return _primitive(kind)
        case RowType(fields=fields):
            parts = [numbered.field(place) for place in range(numbered.num_fields)]
            return StructType(tuple(map(_field, fields, parts)))
        case ArrayType(element=element):
            part = numbered.value_field
            return ListType(_id_of(part), _type(element, part.type), not element.nullable)
        case PaimonMap(key=key, value=value):
            value_type = _type(value, numbered.item_type)
            return _map(numbered, _type(key, numbered.key_type), value_type, not value.nullable)
        case MultisetType(element=element):
            count = PrimitiveType("int")
            return _map(numbered, _type(element, numbered.key_type), count, value_required=True)
    raise _refused(_Unreadable("", kind, "Iceberg has no such type"))


def _map(numbered: pa.DataType, key: Type, value: Type, value_required: bool) -> MapType:
    key_id, value_id = _id_of(numbered.key_field), _id_of(numbered.item_field)
    return MapType(key_id, key, value_id, value, value_required)


def _id_of(part: pa.Field) -> int:
    return int(part.metadata[_ID])


def _primitive(kind: AtomicType) -> PrimitiveType:
    if kind.name is TypeName.DECIMAL:
        return PrimitiveType("decimal", (kind.precision, kind.scale))
    if kind.name in _TIMES:
        return PrimitiveType(_TIMES[kind.name] + ("_ns" if kind.precision > _MOST_MICROS else ""))
    return PrimitiveType(_PLAIN[kind.name])


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A part of a column that Iceberg readers cannot read, with the reason and the next step."""

    column: str
    type: DataType
    reason: str
    remedy: str = "Use another type"


def _unreadable_parts(column: str, kind: DataType, version: int) -> Iterator[_Unreadable]:
    """Yield the parts of a column that readers of a format version cannot read."""
    match kind:
        case RowType(fields=fields):
            for field in fields:
                yield from _unreadable_parts(f"{column}.{field.name}", field.type, version)
        case ArrayType(element=element) | MultisetType(element=element):
            yield from _unreadable_parts(f"{column}.element", element, version)
        case PaimonMap(key=key, value=value):
            yield from _unreadable_parts(f"{column}.key", key, version)
            yield from _unreadable_parts(f"{column}.value", value, version)
        case AtomicType(name=TypeName.TIME):
            reason = "its files hold milliseconds, which few readers accept"
            yield _Unreadable(column, kind, reason)
        case AtomicType(name=name) if name in _TIMES:
            if kind.precision > _MOST_MICROS and version < _HAS_NANOS:
                yield _Unreadable(
                    column,
                    kind,
                    "Iceberg version 2 has only microseconds",
                    "Use another type, or set 'metadata.iceberg.format-version' to '3'",
                )
        case AtomicType(name=name) if name in _PLAIN or name is TypeName.DECIMAL:
            return
        case _:
            yield _Unreadable(column, kind, "this library does not publish such a type")


def _is_readable(field: DataField, version: int) -> bool:
    return not any(_unreadable_parts(field.name, field.type, version))


def _refused(part: _Unreadable) -> UnsupportedError:
    return UnsupportedError(
        f"column {part.column!r} has the type {type_to_json(part.type)}, which cannot be published "
        f"as Iceberg metadata: {part.reason}. {part.remedy}"
    )


def _ids(kind: Type) -> Iterator[int]:
    for field in inner_fields(kind):
        yield field.id
        yield from _ids(field.type)


def _leaves(kind: Type) -> Iterator[tuple[int, PrimitiveType]]:
    for field in inner_fields(kind):
        if isinstance(field.type, PrimitiveType):
            yield field.id, field.type
        else:
            yield from _leaves(field.type)


def _is_promotion(before: PrimitiveType, after: PrimitiveType) -> bool:
    if before.name == after.name == "decimal":
        return before.scale == after.scale and before.precision <= after.precision
    return (before.name, after.name) in _PROMOTED
