# SPDX-License-Identifier: Apache-2.0
"""Converts an Arrow schema to the schema of a new table; fields get ids in the same order as in
Java.

The fields of one level get their ids before their nested fields.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.schema import Schema, named_fields
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type
from lakeformat.types.closest import closest

__all__ = ["new_field", "new_schema", "new_type", "require_not_reserved"]

_MAX_PRECISION = 38
_DOC = b"comment"
_PLAIN = {
    pa.bool_(): "boolean",
    # Iceberg has no unsigned and no small integers: the next larger type holds every value.
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.uint32(): "long",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.time32("s"): "time",
    pa.time32("ms"): "time",
    pa.time64("us"): "time",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.uuid(): "uuid",
    pa.null(): "unknown",
}
_SINCE_3 = ("timestamp_ns", "timestamptz_ns", "unknown")
_RESERVED = ("_pos", "_row_id", "_last_updated_sequence_number")
"""The names of the metadata columns that are read in addition to the columns of a table."""


def new_schema(
    columns: pa.Schema, identifier_fields: Sequence[str] = (), format_version: int = 2
) -> Schema:
    """Return schema 0 of a new table.

    ``identifier_fields`` are the columns whose values identify a row; they become required. Raise
    ``UnsupportedError`` for a column whose type ``format_version`` does not have. Raise
    ``InvalidRequestError`` for a repeated or reserved name, for a wrong identifier field, or if
    there is no column.
    """
    if not isinstance(columns, pa.Schema):
        raise InvalidRequestError(f"the columns must be a pyarrow.Schema, got {columns!r}")
    names = columns.names
    if not names:
        raise InvalidRequestError("a table needs at least one column: give it one")
    for name in names:
        require_not_reserved(name)
    for name in identifier_fields:
        if name not in names:
            raise InvalidRequestError(
                f"primary_key names {name!r}, which is not a column of the new table; its columns "
                f"are {', '.join(names)}{closest(name, names)}"
            )
    fields = _fields([*columns], itertools.count(1), format_version)
    times = Counter(name for name, _ in named_fields(StructType(tuple(fields))))
    if repeated := [name for name in times if times[name] > 1]:
        raise InvalidRequestError(
            f"column {repeated[0]!r} is given more than once: rename one of them. A field inside "
            "of a struct has a dotted name, such as address.city"
        )
    identified = [_identifier(each) if each.name in identifier_fields else each for each in fields]
    ids = tuple(each.id for each in identified if each.name in identifier_fields)
    return Schema(0, tuple(identified), ids)


def require_not_reserved(name: str) -> None:
    """Raise ``InvalidRequestError`` if ``name`` is one of the metadata columns in ``_RESERVED``."""
    if name in _RESERVED:
        raise InvalidRequestError(
            f"a column cannot have the name {name!r}, because Iceberg uses it for a metadata "
            "column: choose another name"
        )


def _identifier(field: Field) -> Field:
    if not isinstance(field.type, PrimitiveType) or field.type.name in ("float", "double"):
        raise InvalidRequestError(
            f"column {field.name!r} cannot identify rows, because its type is nested or a "
            "floating-point type: name other columns in primary_key"
        )
    return Field(field.id, field.name, field.type, required=True, doc=field.doc)


def _fields(columns: Sequence[pa.Field], ids: Iterator[int], version: int) -> list[Field]:
    numbered = [(next(ids), column) for column in columns]
    return [new_field(number, column, ids, version) for number, column in numbered]


def new_field(number: int, column: pa.Field, ids: Iterator[int], version: int) -> Field:
    """Return the field with the id ``number`` for the Arrow field ``column``.

    Nested fields get their ids from ``ids``. Raise ``UnsupportedError``, with the name of the
    field, if the format ``version`` has no such type.
    """
    try:
        kind = new_type(column.type, ids, version)
    except UnsupportedError as reason:
        raise UnsupportedError(f"column {column.name!r}: {reason}") from None
    doc = (column.metadata or {}).get(_DOC)
    return Field(
        number, column.name, kind, not column.nullable, None if doc is None else doc.decode()
    )


def new_type(arrow: pa.DataType, ids: Iterator[int], version: int) -> Type:
    """Return the Iceberg type for the type ``arrow``; nested fields get their ids from ``ids``.

    Raise ``UnsupportedError`` if the format ``version`` has no such type.
    """
    if pa.types.is_dictionary(arrow):
        return new_type(arrow.value_type, ids, version)
    if pa.types.is_struct(arrow):
        return StructType(tuple(_fields([*arrow], ids, version)))
    if pa.types.is_map(arrow):
        key_id, value_id = next(ids), next(ids)
        key = new_type(arrow.key_type, ids, version)
        value = new_type(arrow.item_type, ids, version)
        return MapType(key_id, key, value_id, value, not arrow.item_field.nullable)
    if _is_list(arrow):
        element_id = next(ids)
        element = new_type(arrow.value_type, ids, version)
        return ListType(element_id, element, not arrow.value_field.nullable)
    return _primitive(arrow, version)


def _is_list(arrow: pa.DataType) -> bool:
    return any(
        is_kind(arrow)
        for is_kind in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_fixed_size_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
        )
    )


def _primitive(arrow: pa.DataType, version: int) -> PrimitiveType:
    found = PrimitiveType(_PLAIN[arrow]) if arrow in _PLAIN else _with_parameters(arrow)
    if found is None:
        raise UnsupportedError(
            f"Iceberg has no type for the values of {arrow}: cast the column to another type"
        )
    if found.name in _SINCE_3 and version < 3:
        cast = "" if found.name == "unknown" else ", or cast the column to microseconds"
        raise UnsupportedError(
            f"the type {found.name} needs format version 3: create a table with "
            f"'format-version' = '3', or upgrade the table in Spark{cast}"
        )
    return found


def _with_parameters(arrow: pa.DataType) -> PrimitiveType | None:
    if pa.types.is_timestamp(arrow):
        zoned = "timestamp" if arrow.tz is None else "timestamptz"
        return PrimitiveType(f"{zoned}_ns" if arrow.unit == "ns" else zoned)
    if pa.types.is_decimal(arrow):
        fits = 0 <= arrow.scale <= arrow.precision <= _MAX_PRECISION
        return PrimitiveType("decimal", (arrow.precision, arrow.scale)) if fits else None
    if pa.types.is_fixed_size_binary(arrow):
        return PrimitiveType("fixed", (arrow.byte_width,))
    return None
