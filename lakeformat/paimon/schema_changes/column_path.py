# SPDX-License-Identifier: Apache-2.0
"""Replaces a column, or a field inside one, given its path.

A table is treated as a ROW of its columns, so that columns and nested fields are found alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakeformat.errors import InvalidRequestError
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import ArrayType, DataField, DataType, MapType, RowType

__all__ = [
    "ELEMENT",
    "VALUE",
    "Fields",
    "edit_siblings",
    "edit_type",
    "position_of",
    "put",
    "shown",
]

Fields = tuple[DataField, ...]
Path = tuple[str, ...]

ELEMENT = "element"
VALUE = "value"


def edit_siblings(fields: Fields, path: Path, edit: Callable[[Fields], Fields]) -> Fields:
    """Return ``fields`` after ``edit`` has changed the ROW that holds the last name of ``path``.

    ``edit`` gets the fields of this ROW, or all columns for a path of one name, and returns the new
    fields. Raise InvalidRequestError if there is no such ROW.
    """

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise InvalidRequestError(
                f"{shown(path)} cannot exist: {shown(path[:-1])} is {_named(data_type)}, which "
                "has no fields; name a column, or a field of a ROW"
            )
        return replace(data_type, fields=edit(data_type.fields))

    return _edit_inside(fields, path[:-1], edit_row)


def edit_type(fields: Fields, path: Path, edit: Callable[[DataType], DataType]) -> Fields:
    """Return the columns after ``edit`` has changed the type of the column at the path.

    Raise InvalidRequestError if the path does not exist.
    """
    return _edit_inside(fields, path, edit)


def position_of(fields: Fields, name: str, path: Path) -> int:
    """Return the position of ``name`` in ``fields``.

    Raise InvalidRequestError if there is no such field; the error names ``path``.
    """
    for position, field in enumerate(fields):
        if field.name == name:
            return position
    names = ", ".join(".".join((*path[:-1], field.name)) for field in fields)
    raise InvalidRequestError(f"there is no column {shown(path)}; choose one of {names}")


def shown(path: Path) -> str:
    """Return a path as quoted text with dots, for error messages."""
    return repr(".".join(path))


def _edit_inside(fields: Fields, path: Path, edit: Callable[[DataType], DataType]) -> Fields:
    table = _edited(RowType(fields), path, 0, edit)
    assert isinstance(table, RowType)
    return table.fields


def _edited(
    data_type: DataType, path: Path, depth: int, edit: Callable[[DataType], DataType]
) -> DataType:
    if depth == len(path):
        return edit(data_type)
    step = path[depth]
    match data_type:
        case RowType(fields=fields):
            position = position_of(fields, step, path[: depth + 1])
            inner = _edited(fields[position].type, path, depth + 1, edit)
            changed = replace(fields[position], type=inner)
            return replace(data_type, fields=put(fields, position, changed))
        case ArrayType(element=element) if step == ELEMENT:
            return replace(data_type, element=_edited(element, path, depth + 1, edit))
        case MapType(value=value) if step == VALUE:
            return replace(data_type, value=_edited(value, path, depth + 1, edit))
    raise InvalidRequestError(
        f"there is no {shown(path[: depth + 1])}: {shown(path[:depth])} is {_named(data_type)}; "
        f"a path continues with {ELEMENT!r} after an ARRAY, {VALUE!r} after a MAP, and a field "
        "after a ROW"
    )


def put(fields: Fields, position: int, field: DataField) -> Fields:
    """Return ``fields`` with the field at ``position`` replaced by ``field``."""
    return (*fields[:position], field, *fields[position + 1 :])


def _named(data_type: DataType) -> str:
    return type_to_sql(data_type)
