# SPDX-License-Identifier: Apache-2.0
"""The fields of a manifest in the order of their bytes, read from an Avro schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lakeformat.files.avro.avro_container import NotPlainError

__all__ = ["FieldShape", "parse_shape", "shape_of"]

_NUMBERS = ("int", "long")
_BYTES = ("bytes", "string")


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One field of a manifest. A nested record has no shape, but each field inside of it has one.

    ``path`` begins with the names of the records around the field, the outermost first.
    """

    path: str
    kind: str
    """``number``, ``bytes`` or ``string``; for a list, the kind of its items."""
    logical_type: str | None = None
    null_branch: int | None = None
    """The position of null among the branches of the union; None if the field is not nullable."""
    is_list: bool = False
    item_null_branch: int | None = None

    @property
    def contents(self) -> tuple[str, str | None, bool]:
        """The kind, logical type and list flag, which must be equal in two compatible schemas.

        Nullability and the order of union branches may differ.
        """
        return self.kind, self.logical_type, self.is_list

    @property
    def item(self) -> FieldShape:
        """The shape of the items of a list."""
        return FieldShape("", self.kind, null_branch=self.item_null_branch)


@lru_cache(maxsize=64)
def parse_shape(schema: bytes) -> tuple[FieldShape, ...]:
    """Return the fields of an Avro schema, given as JSON.

    Raise ``NotPlainError`` if ``schema`` cannot be the schema of a manifest.
    """
    try:
        return shape_of(json.loads(schema))
    except (ValueError, RecursionError) as reason:
        raise NotPlainError(f"its schema is not JSON: {reason}") from None


def shape_of(schema: Any) -> tuple[FieldShape, ...]:
    """Return the fields of a parsed Avro schema.

    Raise NotPlainError if ``schema`` cannot be the schema of a manifest.
    """
    try:
        fields = tuple(_record_fields(schema, "", {}))
    except (KeyError, TypeError, AttributeError):
        raise NotPlainError("its schema is not that of a manifest") from None
    if len({field.path for field in fields}) != len(fields):
        raise NotPlainError("its schema names a field twice")
    return fields


def _record_fields(schema: Any, prefix: str, named: dict[str, Any]) -> Iterator[FieldShape]:
    if isinstance(schema, str):
        schema = named[schema]
    if schema["type"] != "record":
        raise NotPlainError(f"its schema has the type {schema['type']!r} instead of a record")
    named[schema["name"]] = schema
    for field in schema["fields"]:
        path, field_type = prefix + field["name"], field["type"]
        if _is_record(field_type, named):
            yield from _record_fields(field_type, f"{path}.", named)
        else:
            yield _field(path, field_type)


def _is_record(field_type: Any, named: dict[str, Any]) -> bool:
    if isinstance(field_type, str):
        return field_type in named
    return isinstance(field_type, dict) and field_type["type"] == "record"


def _field(path: str, field_type: Any) -> FieldShape:
    null_branch, plain = _without_null(field_type)
    if isinstance(plain, dict) and plain["type"] == "array":
        item_null_branch, items = _without_null(plain["items"])
        kind, logical_type = _atom(items)
        return FieldShape(path, kind, logical_type, null_branch, True, item_null_branch)
    return FieldShape(path, *_atom(plain), null_branch)


def _without_null(union: Any) -> tuple[int | None, Any]:
    if not isinstance(union, list):
        return None, union
    if len(union) != 2 or union.count("null") != 1:
        raise NotPlainError(
            f"its schema has the union {union}, but only unions of null and one other type are "
            "supported"
        )
    null_branch = union.index("null")
    return null_branch, union[1 - null_branch]


def _atom(avro_type: Any) -> tuple[str, str | None]:
    logical_type = avro_type.get("logicalType") if isinstance(avro_type, dict) else None
    name = avro_type["type"] if isinstance(avro_type, dict) else avro_type
    if name in _NUMBERS:
        return "number", logical_type
    if name in _BYTES:
        return name, logical_type
    raise NotPlainError(f"its schema has the unsupported type {avro_type}")
