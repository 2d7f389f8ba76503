# SPDX-License-Identifier: Apache-2.0
"""Makes the name mapping of a table: Iceberg readers use it for files without field ids.

pypaimon writes such files. A name that several fields of the table have had is left out, because
readers would show old values of one field in another field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field, ListType, MapType, StructType, Type, inner_fields

__all__ = ["NAME_MAPPING", "name_mapping"]

NAME_MAPPING = "schema.name-mapping.default"
"""The table property that holds the name mapping."""


def name_mapping(schemas: Iterable[Schema]) -> str:
    """Return the name mapping for all schemas of a table, given oldest first, as JSON."""
    return json.dumps(_mapping([schema.struct for schema in schemas]), separators=(",", ":"))


def _mapping(kinds: Sequence[Type]) -> list[dict[str, Any]]:
    """Return the name mapping of the fields inside a type, from all versions of the type."""
    versions: dict[int, list[Field]] = {}
    owners: dict[str, set[int]] = {}
    for kind in kinds:
        for field in inner_fields(kind):
            versions.setdefault(field.id, []).append(field)
            owners.setdefault(field.name, set()).add(field.id)
    found = []
    for number, fields in versions.items():
        names = [*dict.fromkeys(each.name for each in reversed(fields))]
        mapped: dict[str, Any] = {
            "field-id": number,
            "names": [name for name in names if len(owners[name]) == 1],
        }
        if isinstance(kinds[-1], ListType):
            mapped["names"].append("item")
        if inner := _mapping([each.type for each in fields if _has_fields(each.type)]):
            mapped["fields"] = inner
        found.append(mapped)
    return found


def _has_fields(kind: Type) -> bool:
    return isinstance(kind, StructType | ListType | MapType)
