# SPDX-License-Identifier: Apache-2.0
"""The types of Iceberg: primitive types, structs, lists and maps, with ids for their fields.

``type_json.py`` parses them from JSON; ``arrow_types.py`` converts them to Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

__all__ = [
    "Field",
    "ListType",
    "MapType",
    "PrimitiveType",
    "StructType",
    "Type",
    "inner_fields",
]


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type: its name, such as ``decimal``, and its parameters."""

    name: str
    parameters: tuple[int | str, ...] = ()

    @property
    def precision(self) -> int:
        """The precision of ``decimal``."""
        return int(self.parameters[0])

    @property
    def scale(self) -> int:
        """The scale of ``decimal``."""
        return int(self.parameters[1])

    @property
    def length(self) -> int:
        """The length of ``fixed``, in bytes."""
        return int(self.parameters[0])

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        listed = ", ".join(map(str, self.parameters))
        return f"{self.name}[{listed}]" if self.name == "fixed" else f"{self.name}({listed})"


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct: named fields."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{each.name}: {each.type}' for each in self.fields)}>"


@dataclass(frozen=True, slots=True)
class ListType:
    """A list; its element has an id."""

    element_id: int
    element: Type
    element_required: bool

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map; its key and its value have ids. A key is never null."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


Type: TypeAlias = PrimitiveType | StructType | ListType | MapType


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a nested field. The id identifies it, because the name can change."""

    id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    """The value, in its JSON form, for rows that were written before the field was added."""
    write_default: Any = None
    """The value, in its JSON form, for new rows that lack the field."""

    def without_comment(self) -> Field:
        """Return the field without its own comment; comments of fields inside of it remain."""
        return replace(self, doc=None)


def inner_fields(kind: Type) -> Iterator[Field]:
    """Yield the direct fields of a type: the fields of a struct, ``element`` of a list, or ``key``
    and ``value`` of a map.
    """
    match kind:
        case StructType():
            yield from kind.fields
        case ListType():
            yield Field(kind.element_id, "element", kind.element, kind.element_required)
        case MapType():
            yield Field(kind.key_id, "key", kind.key, required=True)
            yield Field(kind.value_id, "value", kind.value, kind.value_required)
