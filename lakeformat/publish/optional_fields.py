# SPDX-License-Identifier: Apache-2.0
"""Fields that were optional or missing in an earlier schema are optional in published schemas.

Snapshots and files of the earlier schema may have nulls in such a field, or lack it, even if the
table does not allow nulls now. Readers of Iceberg expect no nulls in a required field, so a search
for nulls would not find these rows. Readers also refuse files that lack a required field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from lakeformat.iceberg.schema import Schema, named_fields
from lakeformat.iceberg.types import ListType, MapType, StructType, Type

__all__ = ["optional_as_before", "optional_fields", "with_optional_fields"]


def optional_as_before(schemas: Iterable[Schema]) -> Iterator[Schema]:
    """Yield the schemas, oldest first; a field is required only if it was required in all earlier
    schemas.
    """
    required: set[int] | None = None
    for schema in schemas:
        here = {field.id for _, field in named_fields(schema.struct) if field.required}
        others = set() if required is None else here - required
        required = here - others
        yield with_optional_fields(schema, others) if others else schema


def optional_fields(schema: Schema) -> set[int]:
    """Return the ids of all fields that allow nulls, including nested fields."""
    return {field.id for _, field in named_fields(schema.struct) if not field.required}


def with_optional_fields(schema: Schema, ids: Set[int]) -> Schema:
    """Return the schema in which the fields with the given ids allow nulls."""
    return replace(schema, fields=_struct(schema.struct, ids).fields)


def _struct(kind: StructType, ids: Set[int]) -> StructType:
    fields = (
        replace(
            field,
            type=_type(field.type, ids),
            required=field.required and field.id not in ids,
        )
        for field in kind.fields
    )
    return StructType(tuple(fields))


def _type(kind: Type, ids: Set[int]) -> Type:
    match kind:
        case StructType():
            return _struct(kind, ids)
        case ListType():
            required = kind.element_required and kind.element_id not in ids
            return replace(kind, element=_type(kind.element, ids), element_required=required)
        case MapType():
            required = kind.value_required and kind.value_id not in ids
            key, value = _type(kind.key, ids), _type(kind.value, ids)
            return replace(kind, key=key, value=value, value_required=required)
    return kind
