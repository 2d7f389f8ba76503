# SPDX-License-Identifier: Apache-2.0
"""The fields of an Avro record in the order of their bytes, for decoders of many records at once.

The types are those of Iceberg's manifests: atoms (values that are neither record nor list),
records, lists of numbers, and maps as lists of records with a key and a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lakeformat.files.avro.avro_container import NotPlainError

__all__ = ["Atom", "AtomShape", "ListShape", "Shape", "shapes_of"]


class Atom(Enum):
    """The forms of values that are neither a record nor a list."""

    NUMBER = "int or long"
    BOOLEAN = "boolean"
    FLOAT = "float"
    DOUBLE = "double"
    FIXED = "fixed"
    BYTES = "bytes"
    TEXT = "string"


_ATOMS = {
    "int": Atom.NUMBER,
    "long": Atom.NUMBER,
    "boolean": Atom.BOOLEAN,
    "float": Atom.FLOAT,
    "double": Atom.DOUBLE,
    "bytes": Atom.BYTES,
    "string": Atom.TEXT,
}
_SIZES = {Atom.BOOLEAN: 1, Atom.FLOAT: 4, Atom.DOUBLE: 8}
_PAIR = ("key", "value")
_MOST_FIELDS = 4096


@dataclass(frozen=True, slots=True)
class AtomShape:
    """The form of a field that is neither a record nor a list."""

    atom: Atom
    size: int = 0
    """The size of each value in bytes; 0 if each value has its own size."""
    null_branch: int | None = None
    """The index of null in the union; None if the field is required."""


@dataclass(frozen=True, slots=True)
class ListShape:
    """The form of a list of values, or of records with ``key`` and ``value``; no item is null."""

    item: tuple[Atom, ...]
    """The form of an item: one atom, or two for a key and a value."""
    null_branch: int | None = None

    @property
    def is_numbers(self) -> bool:
        """True if all items, or all keys and values, are numbers."""
        return all(each is Atom.NUMBER for each in self.item)


Shape = AtomShape | ListShape


def shapes_of(schema: Mapping[str, Any]) -> dict[str, Shape]:
    """Return the fields of a schema that fastavro parsed, by path, such as ``data_file.file_path``.

    Raise ``NotPlainError`` if only the general decoder can read records of this schema.
    """
    found: dict[str, Shape] = {}
    for path, shape in _fields(schema, "", dict(schema.get("__named_schemas", {}))):
        if path in found or len(found) == _MOST_FIELDS:
            raise NotPlainError(
                f"its schema has the field {path} twice, or more than {_MOST_FIELDS} fields"
            )
        found[path] = shape
    return found


def _fields(
    record: Mapping[str, Any], prefix: str, named: Mapping[str, Any]
) -> Iterator[tuple[str, Shape]]:
    for field in record["fields"]:
        path, kind = prefix + field["name"], _resolved(field["type"], named)
        if _type_name(kind) == "record":
            if prefix.count(".") > len(named):
                raise NotPlainError("its schema has a record inside itself")
            yield from _fields(kind, f"{path}.", named)
        else:
            yield path, _shape(kind, named)


def _shape(kind: Any, named: Mapping[str, Any]) -> Shape:
    null_branch = None
    if isinstance(kind, list):
        plain = [each for each in kind if each != "null"]
        if len(kind) != 2 or len(plain) != 1:
            raise NotPlainError(
                f"its schema has the union {kind}, but the fast decoder reads only unions of null "
                "and one other type"
            )
        null_branch, kind = kind.index("null"), _resolved(plain[0], named)
    if _type_name(kind) == "array":
        return ListShape(_item(_resolved(kind["items"], named), named), null_branch)
    atom, size = _atom(kind)
    return AtomShape(atom, size, null_branch)


def _item(kind: Any, named: Mapping[str, Any]) -> tuple[Atom, ...]:
    if _type_name(kind) != "record":
        parts = [kind]
    elif tuple(field["name"] for field in kind["fields"]) == _PAIR:
        parts = [_resolved(field["type"], named) for field in kind["fields"]]
    else:
        raise NotPlainError("its schema has a list of records whose fields are not key and value")
    item = tuple(_atom(each)[0] for each in parts)
    if item not in _ITEMS:
        raise NotPlainError(
            "its schema has a list whose items are neither numbers nor pairs of key and value with "
            "a number as the key"
        )
    return item


def _atom(kind: Any) -> tuple[Atom, int]:
    name = _type_name(kind)
    if name == "fixed":
        return Atom.FIXED, int(kind["size"])
    if name not in _ATOMS:
        raise NotPlainError(f"its schema has the type {name}, which the fast decoder cannot read")
    return _ATOMS[name], _SIZES.get(_ATOMS[name], 0)


def _resolved(kind: Any, named: Mapping[str, Any]) -> Any:
    return named.get(kind, kind) if isinstance(kind, str) else kind


def _type_name(kind: Any) -> str:
    return str(kind["type"]) if isinstance(kind, dict) else str(kind)


_ITEMS = ((Atom.NUMBER,), (Atom.NUMBER, Atom.NUMBER), (Atom.NUMBER, Atom.BYTES))
