# SPDX-License-Identifier: Apache-2.0
"""Assigns field ids to a new column, each larger than every id that the table ever used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakeformat.types.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

__all__ = ["highest_id", "moved_behind"]


def moved_behind(field: DataField, last_id: int) -> DataField:
    """Return a column with new field ids: 0 becomes ``last_id + 1``, 1 becomes ``last_id + 2``, ...

    Nested fields are renumbered, too.
    """
    return _shifted(field, last_id + 1)


def highest_id(fields: tuple[DataField, ...]) -> int:
    """Return the highest field id of the columns and their nested fields; -1 without columns."""
    return max((found for field in fields for found in _ids(field)), default=-1)


def _shifted(field: DataField, offset: int) -> DataField:
    return replace(field, id=field.id + offset, type=_shifted_inside(field.type, offset))


def _shifted_inside(data_type: DataType, offset: int) -> DataType:
    match data_type:
        case RowType(fields=fields):
            return replace(data_type, fields=tuple(_shifted(field, offset) for field in fields))
        case ArrayType(element=part) | VectorType(element=part) | MultisetType(element=part):
            return replace(data_type, element=_shifted_inside(part, offset))
        case MapType(key=key, value=value):
            moved = (_shifted_inside(part, offset) for part in (key, value))
            return replace(data_type, key=next(moved), value=next(moved))
    return data_type


def _ids(field: DataField) -> Iterator[int]:
    yield field.id
    yield from _ids_inside(field.type)


def _ids_inside(data_type: DataType) -> Iterator[int]:
    match data_type:
        case RowType(fields=fields):
            for field in fields:
                yield from _ids(field)
        case ArrayType(element=part) | VectorType(element=part) | MultisetType(element=part):
            yield from _ids_inside(part)
        case MapType(key=key, value=value):
            yield from _ids_inside(key)
            yield from _ids_inside(value)
