# SPDX-License-Identifier: Apache-2.0
"""One version of a table's schema: its columns, which are found by id or by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakeformat.iceberg.arrow_types import to_arrow_field
from lakeformat.iceberg.type_json import require_int, struct_from_json, struct_to_json
from lakeformat.iceberg.types import Field, StructType, Type, inner_fields

__all__ = ["Schema", "named_fields", "schema_from_json", "schema_to_json"]


@dataclass(frozen=True)
class Schema:
    """The columns of a table in one version of its schema."""

    schema_id: int
    fields: tuple[Field, ...]
    identifier_field_ids: tuple[int, ...] = ()

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in their order."""
        return [field.name for field in self.fields]

    @property
    def struct(self) -> StructType:
        """The columns as one struct."""
        return StructType(self.fields)

    def field(self, field_id: int) -> Field | None:
        """Return the column or nested field with an id; None if it does not exist."""
        found = self._by_id.get(field_id)
        return None if found is None else found[1]

    def name_of(self, field_id: int) -> str | None:
        """Return the dotted name of a field, such as ``tags.element``; None if the id does not
        exist.
        """
        found = self._by_id.get(field_id)
        return None if found is None else found[0]

    def named(self, name: str) -> Field | None:
        """Return the field with a dotted name, such as ``address.city`` or ``tags.element``; None
        if it does not exist.
        """
        return self._by_name.get(name)

    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the table's rows.

        Raise ``UnsupportedError`` if this library cannot read the type of a column.
        """
        return pa.schema([to_arrow_field(field) for field in self.fields])

    @cached_property
    def _by_id(self) -> dict[int, tuple[str, Field]]:
        return {field.id: (name, field) for name, field in named_fields(self.struct)}

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return dict(named_fields(self.struct))


def schema_from_json(written: Mapping[str, Any]) -> Schema:
    """Parse a schema from table metadata.

    A schema without an id, which version 1 allows, gets the id 0. Raise ``KeyError`` for a missing
    member, ``ValueError`` for a wrong value, and ``UnsupportedError`` for an unknown type.
    """
    fields = struct_from_json(written).fields
    schema_id = require_int(written, "schema-id") if "schema-id" in written else 0
    named = list(named_fields(StructType(fields)))
    ids = [field.id for _, field in named]
    _require_once(schema_id, "field ids", ids)
    _require_once(schema_id, "names", [name for name, _ in named])
    identifiers = written.get("identifier-field-ids") or ()
    if not all(type(each) is int and each in ids for each in identifiers):
        raise ValueError(
            f"identifier-field-ids of schema {schema_id} is {identifiers!r}, but the schema does "
            "not have a field for each of these ids"
        )
    return Schema(schema_id, fields, tuple(identifiers))


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return a schema as JSON of table metadata."""
    written = {**struct_to_json(schema.struct), "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        written["identifier-field-ids"] = [*schema.identifier_field_ids]
    return written


def _require_once(schema_id: int, what: str, given: Sequence[int] | Sequence[str]) -> None:
    if repeated := [each for each, times in Counter(given).items() if times > 1]:
        raise ValueError(f"schema {schema_id} gives the {what} {repeated} more than once")


def named_fields(kind: Type, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield all fields inside of a type with their dotted names.

    A struct, list or map precedes the fields inside of it.
    """
    for field in inner_fields(kind):
        name = f"{prefix}{field.name}"
        yield name, field
        yield from named_fields(field.type, f"{name}.")
