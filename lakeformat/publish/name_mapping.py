# SPDX-License-Identifier: Apache-2.0
"""Makes the name mapping of a table: Iceberg readers use it for files without field ids.

pypaimon writes such files. A name that several fields have had is mapped to a dropped field, or to
an id that no field has. Otherwise readers could return the values of one field in another field.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, ListType, MapType, StructType, Type, inner_fields
from lakeformat.paimon.datafile.system_fields import (
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    key_field,
)
from lakeformat.paimon.schema import TableSchema
from lakeformat.types.types import DataField

__all__ = ["NAME_MAPPING", "name_mapping"]

NAME_MAPPING = "schema.name-mapping.default"
"""The table property that holds the name mapping."""
_NO_FIELD = 1_000_000_000
"""An id that no field has."""


def name_mapping(schemas: Iterable[Schema], newest: TableSchema) -> str:
    """Return, as JSON, the name mapping for all ``schemas`` of a table, given oldest first."""
    found = _mapping([schema.struct for schema in schemas])
    if newest.primary_keys:
        found += _system_columns(found, newest.key_fields)
    return json.dumps(found, separators=(",", ":"))


def _system_columns(
    mapping: Sequence[dict[str, Any]], keys: Sequence[DataField]
) -> list[dict[str, Any]]:
    """Return the mapping of the system columns in the files of primary-key tables.

    Readers do not return these columns, but PyIceberg refuses files with a column whose name is not
    mapped.
    """
    ids = {field.id: key_field(field).id for field in keys}
    found = [
        {
            "field-id": ids[each["field-id"]],
            "names": [f"{KEY_PREFIX}{name}" for name in each["names"]],
        }
        for each in mapping
        if each["field-id"] in ids
    ]
    system = (SEQUENCE_NUMBER, VALUE_KIND)
    return [*found, *({"field-id": each.id, "names": [each.name]} for each in system)]


def _mapping(kinds: Sequence[Type]) -> list[dict[str, Any]]:
    """Return the name mapping of the fields inside a type, from all versions of the type."""
    versions: dict[int, list[Field]] = {}
    called: dict[int, list[str]] = {}
    owners: dict[str, list[int]] = {}
    for kind in kinds:
        for field in inner_fields(kind):
            versions.setdefault(field.id, []).append(field)
            for name in _names_in(kind, field):
                called.setdefault(field.id, []).append(name)
                if field.id not in owners.setdefault(name, []):
                    owners[name].append(field.id)
    alive = {field.id for field in inner_fields(kinds[-1])} if kinds else set()
    owner = {name: _owner(ids, alive) for name, ids in owners.items()}
    found = []
    for number, given in called.items():
        names = [*dict.fromkeys(reversed(given))]
        owned = [name for name in names if owner[name] == number]
        alike = {each: None for name in owned for each in owners[name]} or {number: None}
        types = [field.type for each in alike for field in versions[each]]
        found.append(_entry(number, owned, types))
    if unowned := [name for name, number in owner.items() if number == _NO_FIELD]:
        types = [
            each.type for name in unowned for number in owners[name] for each in versions[number]
        ]
        found.append(_entry(_NO_FIELD, unowned, types))
    return found


def _owner(ids: Sequence[int], alive: Collection[int]) -> int:
    """Return the id of the field to which a name is mapped.

    ``ids`` are the ids of all fields that had the name. ``alive`` are the ids of the fields in the
    newest schema. If several fields had the name, return the id of a dropped field, or an id that
    no field has. Then no reader returns the values of one field in another.
    """
    if len(ids) == 1:
        return ids[0]
    return next((each for each in ids if each not in alive), _NO_FIELD)


def _names_in(kind: Type, field: Field) -> tuple[str, ...]:
    """Return the names that files have for a field inside a type; the last one is Iceberg's."""
    return ("item", field.name) if isinstance(kind, ListType) else (field.name,)


def _entry(number: int, names: list[str], types: Sequence[Type]) -> dict[str, Any]:
    entry: dict[str, Any] = {"field-id": number, "names": names}
    if inner := _mapping([each for each in types if _has_fields(each)]):
        entry["fields"] = inner
    return entry


def _has_fields(kind: Type) -> bool:
    return isinstance(kind, StructType | ListType | MapType)
