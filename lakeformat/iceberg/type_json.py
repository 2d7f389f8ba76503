# SPDX-License-Identifier: Apache-2.0
"""Types and fields as the JSON of table metadata has them.

A value of the wrong kind raises ``ValueError`` and a missing member ``KeyError``; the caller names
the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.types import Field, ListType, MapType, PrimitiveType, StructType, Type

__all__ = ["field_from_json", "require_int", "require_list", "struct_from_json", "type_from_json"]

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


def type_from_json(written: Any) -> Type:
    """Return the type that the metadata writes as a text, or as an object with members."""
    if isinstance(written, str):
        return _primitive(written)
    if not isinstance(written, Mapping):
        raise ValueError(f"a type is {written!r}, not a text or an object")
    kind = written["type"]
    if kind == "struct":
        return struct_from_json(written)
    if kind == "list":
        return ListType(
            require_int(written, "element-id"),
            type_from_json(written["element"]),
            _require_bool(written, "element-required"),
        )
    if kind == "map":
        return MapType(
            require_int(written, "key-id"),
            type_from_json(written["key"]),
            require_int(written, "value-id"),
            type_from_json(written["value"]),
            _require_bool(written, "value-required"),
        )
    raise _unknown(kind)


def struct_from_json(written: Mapping[str, Any]) -> StructType:
    """Return the struct of an object with ``fields``, such as a schema."""
    return StructType(tuple(field_from_json(each) for each in require_list(written, "fields")))


def field_from_json(written: Mapping[str, Any]) -> Field:
    """Return a field of a struct; an error about its type names the field."""
    name = written["name"]
    if not isinstance(name, str):
        raise ValueError(f"the name of a field is {name!r}, not a text")
    try:
        kind = type_from_json(written["type"])
    except UnsupportedError as reason:
        raise UnsupportedError(f"field {name!r}: {reason}") from None
    doc = written.get("doc")
    return Field(
        require_int(written, "id"),
        name,
        kind,
        _require_bool(written, "required"),
        None if doc is None else str(doc),
        written.get("initial-default"),
        written.get("write-default"),
    )


def require_int(members: Mapping[str, Any], key: str) -> int:
    """Return the int at a key."""
    value = members[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key} is {value!r}, not an int")
    return value


def require_list(members: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list of objects at a key."""
    value = members[key]
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise ValueError(f"{key} is {value!r}, not a list of objects")
    return value


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
            raise ValueError(f"type {text} has a precision or a scale that is not allowed")
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
