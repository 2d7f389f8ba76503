# SPDX-License-Identifier: Apache-2.0
"""Converts types and fields to and from the JSON of table metadata.

Parsing raises ``ValueError`` for a wrong value, ``KeyError`` for a missing member and
``UnsupportedError`` for an unknown type. The caller adds the name of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type
from lakeformat.types.type_rules import MAX_DEPTH

__all__ = [
    "require_int",
    "require_list",
    "require_text",
    "struct_from_json",
    "struct_to_json",
    "texts_at",
    "type_from_json",
    "type_to_json",
]

_PLAIN = frozenset(
    {
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "uuid",
        "binary",
        "unknown",
        "variant",
        "geometry",
        "geography",
    }
)
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]", re.ASCII)
_GEO = re.compile(r"(geometry|geography)\(([^()]*)\)")
_MAX_PRECISION = 38
_INT = range(-(1 << 31), 1 << 31)


def type_from_json(written: Any, levels: int = MAX_DEPTH) -> Type:
    """Parse a type from its JSON form: a str for a primitive type, a dict for any other type.

    ``levels`` limits how deep types may be nested. Raise ``KeyError`` for a missing member,
    ``ValueError`` for a wrong value, and ``UnsupportedError`` for an unknown type.
    """
    if isinstance(written, str):
        return _primitive(written)
    if not isinstance(written, Mapping):
        raise ValueError(f"a type must be a JSON string or object, got {written!r}")
    if not levels:
        raise ValueError(f"types nest more than {MAX_DEPTH} deep")
    kind = written["type"]
    if kind == "struct":
        return struct_from_json(written, levels)
    if kind == "list":
        return ListType(
            require_int(written, "element-id"),
            type_from_json(written["element"], levels - 1),
            _require_bool(written, "element-required"),
        )
    if kind == "map":
        return MapType(
            require_int(written, "key-id"),
            type_from_json(written["key"], levels - 1),
            require_int(written, "value-id"),
            type_from_json(written["value"], levels - 1),
            _require_bool(written, "value-required"),
        )
    raise _unknown(kind)


def struct_from_json(written: Mapping[str, Any], levels: int = MAX_DEPTH) -> StructType:
    """Parse a struct, such as a schema, from an object with ``fields``; errors as in
    ``type_from_json``.
    """
    fields = require_list(written, "fields")
    return StructType(tuple(_field_from_json(each, levels - 1) for each in fields))


def _field_from_json(written: Mapping[str, Any], levels: int) -> Field:
    name = require_text(written, "name")
    try:
        kind = type_from_json(written["type"], levels)
    except UnsupportedError as reason:
        raise UnsupportedError(f"field {name!r}: {reason}") from None
    return Field(
        require_int(written, "id"),
        name,
        kind,
        _require_bool(written, "required"),
        require_text(written, "doc") if written.get("doc") is not None else None,
        written.get("initial-default"),
        written.get("write-default"),
    )


def type_to_json(kind: Type) -> Any:
    """Return a type as JSON of table metadata."""
    match kind:
        case PrimitiveType():
            return str(kind)
        case StructType():
            return struct_to_json(kind)
        case ListType():
            return {
                "type": "list",
                "element-id": kind.element_id,
                "element": type_to_json(kind.element),
                "element-required": kind.element_required,
            }
        case MapType():
            return {
                "type": "map",
                "key-id": kind.key_id,
                "key": type_to_json(kind.key),
                "value-id": kind.value_id,
                "value": type_to_json(kind.value),
                "value-required": kind.value_required,
            }


def struct_to_json(struct: StructType) -> dict[str, Any]:
    """Return a struct as an object with ``fields``."""
    return {"type": "struct", "fields": [_field_to_json(each) for each in struct.fields]}


def _field_to_json(field: Field) -> dict[str, Any]:
    kind = type_to_json(field.type)
    written = {"id": field.id, "name": field.name, "required": field.required, "type": kind}
    optional = {
        "doc": field.doc,
        "initial-default": field.initial_default,
        "write-default": field.write_default,
    }
    return written | {key: value for key, value in optional.items() if value is not None}


def require_int(members: Mapping[str, Any], key: str) -> int:
    """Return the member ``key``.

    Raise ``KeyError`` if it is missing, and ``ValueError`` unless it is an int of 32 bits.
    """
    value = members[key]
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT:
        raise ValueError(f"{key} is {value!r}, not an int of 32 bits")
    return value


def require_text(members: Mapping[str, Any], key: str) -> str:
    """Return the member ``key``.

    Raise ``KeyError`` if it is missing, and ``ValueError`` unless it is a str without lone
    surrogates.
    """
    value = members[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} is {value!r}, not a text")
    value.encode()  # raises for half of a surrogate pair, which is not text
    return value


def require_list(members: Mapping[str, Any], key: str) -> list[Any]:
    """Return the member ``key``.

    Raise ``KeyError`` if it is missing, and ``ValueError`` unless it is a list of objects.
    """
    value = members[key]
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise ValueError(f"{key} is {value!r}, not a list of objects")
    return value


def texts_at(members: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return the member ``key``, a dict of str such as properties; empty if it is missing.

    Raise ``ValueError`` if it has another type.
    """
    value = members.get(key) or {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} is {value!r}, not an object")
    for name in value:
        name.encode()  # raises for half of a surrogate pair, which is not text
    return {name: require_text(value, name) for name in value}


def _require_bool(members: Mapping[str, Any], key: str) -> bool:
    value = members[key]
    if not isinstance(value, bool):
        raise ValueError(f"{key} is {value!r}, not true or false")
    return value


def _primitive(text: str) -> PrimitiveType:
    text = text.strip()
    if text in _PLAIN:
        return PrimitiveType(text)
    if found := _DECIMAL.fullmatch(text):
        precision, scale = map(int, found.groups())
        if not 0 <= scale <= precision <= _MAX_PRECISION or not precision:
            raise ValueError(
                f"type {text} is not valid: the precision must be 1 to {_MAX_PRECISION}, and the "
                "scale 0 to the precision"
            )
        return PrimitiveType("decimal", (precision, scale))
    if found := _FIXED.fullmatch(text):
        return PrimitiveType("fixed", (int(found[1]),))
    if found := _GEO.fullmatch(text):
        return PrimitiveType(found[1], tuple(part.strip() for part in found[2].split(",")))
    raise _unknown(text)


def _unknown(kind: object) -> UnsupportedError:
    return UnsupportedError(
        f"this version does not know the type {kind!r}: read the table with a newer version, or "
        "with the engine that wrote it"
    )
