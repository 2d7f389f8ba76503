# SPDX-License-Identifier: Apache-2.0
"""Iceberg's types: primitive ones, structs, lists and maps, with the ids of their fields.

``type_json.py`` reads them from JSON; ``arrow_types.py`` maps them to Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    """A type without fields: its name, such as ``decimal``, and its parameters."""

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
    """Named fields."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ListType:
    """A list; its elements have an id of their own."""

    element_id: int
    element: Type
    element_required: bool


@dataclass(frozen=True, slots=True)
class MapType:
    """A map; its keys and values have ids of their own, and keys are never null."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool


Type: TypeAlias = PrimitiveType | StructType | ListType | MapType


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a nested field; the id is its identity, the name may change."""

    id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    """The value of rows written before the field was added, in the form that JSON has it."""
    write_default: Any = None
    """The value of new rows that leave the field out, in the form that JSON has it."""


def inner_fields(kind: Type) -> Iterator[Field]:
    """Return the fields right inside a type: those of a struct, ``element``, ``key``, ``value``."""
    match kind:
        case StructType():
            yield from kind.fields
        case ListType():
            yield Field(kind.element_id, "element", kind.element, kind.element_required)
        case MapType():
            yield Field(kind.key_id, "key", kind.key, required=True)
            yield Field(kind.value_id, "value", kind.value, kind.value_required)
