# SPDX-License-Identifier: Apache-2.0
"""Finds the fields that a data file stores, by their ids.

A file without any ids was written by another program. Then the table's name mapping gives an id to
each known name; fields with other names get no id.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from lakeformat.errors import CorruptTableError
from lakeformat.files.nested_arrays import is_any_list

__all__ = ["MappedName", "NameMapping", "StoredField", "parse_name_mapping", "stored_fields"]

_ID_KEYS = (b"PARQUET:field_id", b"iceberg.id", b"field-id")

NameMapping: TypeAlias = "Mapping[str, MappedName]"


@dataclass(frozen=True, slots=True)
class MappedName:
    """The id that a name mapping gives to one name, and the mapping of its nested fields."""

    id: int | None
    inner: NameMapping


@dataclass(frozen=True, slots=True)
class StoredField:
    """A column of a file, or a nested field."""

    name: str
    id: int | None
    """The field id; None if neither the file nor the name mapping gives one."""
    type: pa.DataType
    inner: tuple[StoredField, ...]
    """The fields of a struct, the element of a list, or the key and the value of a map."""

    @property
    def has_ids(self) -> bool:
        """True if this field, or a field inside of it, has an id."""
        return self.id is not None or any(each.has_ids for each in self.inner)


def stored_fields(schema: pa.Schema, mapping: NameMapping | None) -> list[StoredField]:
    """Return the columns that a file stores.

    Raise ``ValueError`` if the file has no ids and ``mapping`` is None.
    """
    found = [_of_file(field) for field in schema]
    if any(each.has_ids for each in found) or not found:
        return found
    if mapping is None:
        raise ValueError(
            "its columns have no field ids, and the table has no property "
            "schema.name-mapping.default that gives ids to names; set it in Spark, as in ALTER "
            "TABLE … SET TBLPROPERTIES ('schema.name-mapping.default' = "
            '\'[{"field-id": 1, "names": ["id"]}]\'), with an entry for each column'
        )
    return [_mapped(each, each.name, mapping) for each in found]


def parse_name_mapping(text: str) -> NameMapping:
    """Parse the table property ``schema.name-mapping.default``.

    Raise ``CorruptTableError`` if it is not a valid name mapping.
    """
    try:
        return _mapping(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as reason:
        raise CorruptTableError(
            f"the table property schema.name-mapping.default cannot be read: {_why(reason)}; write "
            "it again with the engine that set it"
        ) from None


def _why(reason: Exception) -> str:
    return f"an entry has no {reason}" if isinstance(reason, KeyError) else str(reason)


def _mapping(fields: Sequence[Mapping[str, Any]]) -> NameMapping:
    if not isinstance(fields, list):
        raise TypeError(f"{fields!r} is not a list of fields")
    found: dict[str, MappedName] = {}
    for field in fields:
        field_id, names = field.get("field-id"), field["names"]
        if field_id is not None and type(field_id) is not int:
            raise TypeError(f"the field id {field_id!r} is not a number")
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise TypeError(f"names is {names!r}, not a list of names")
        if repeated := found.keys() & names:
            raise ValueError(f"it gives the name {min(repeated)!r} to several fields")
        mapped = MappedName(field_id, _mapping(field.get("fields") or []))
        found |= dict.fromkeys(names, mapped)
    ids = [each.id for each in {id(each): each for each in found.values()}.values()]
    if repeated_ids := [each for each, times in Counter(ids).items() if each and times > 1]:
        raise ValueError(f"it gives the field id {min(repeated_ids)} to several fields")
    return found


def _of_file(field: pa.Field) -> StoredField:
    metadata = field.metadata or {}
    ids = [int(metadata[key]) for key in _ID_KEYS if key in metadata]
    inner = tuple(_of_file(each) for each in _inner(field.type))
    return StoredField(field.name, ids[0] if ids else None, field.type, inner)


def _inner(kind: pa.DataType) -> Iterator[pa.Field]:
    if pa.types.is_struct(kind):
        yield from kind
    elif pa.types.is_map(kind):
        yield from (kind.key_field, kind.item_field)
    elif is_any_list(kind):
        yield kind.value_field


def _mapped(field: StoredField, name: str, mapping: NameMapping) -> StoredField:
    """Return a field with the ids that the name mapping gives to it and to its nested fields."""
    found = mapping.get(name) or MappedName(None, {})
    inner = tuple(
        _mapped(each, inside, found.inner)
        for each, inside in zip(field.inner, _inner_names(field), strict=True)
    )
    return StoredField(field.name, found.id, field.type, inner)


def _inner_names(field: StoredField) -> list[str]:
    """Return the names that a name mapping uses for inner fields; the names in a file may
    differ.
    """
    if pa.types.is_map(field.type):
        return ["key", "value"]
    if pa.types.is_struct(field.type):
        return [each.name for each in field.inner]
    return ["element" for _ in field.inner]
