# SPDX-License-Identifier: Apache-2.0
"""Gives new timestamp columns 6 digits if they have at most 3.

Data files store ``TIMESTAMP(0)`` to ``TIMESTAMP(3)`` as milliseconds. Some Iceberg readers refuse
such files, because timestamps in Iceberg are microseconds. A column with 6 digits can have the same
values, and data files store it as microseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from lakeformat.paimon.schema import TableSchema
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeName,
)

__all__ = ["with_wider_times"]

_log = logging.getLogger(__name__)
_TIMES = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
_MOST_MILLIS = 3
_MICROS = 6


def with_wider_times(schema: TableSchema, before: TableSchema | None) -> TableSchema:
    """Return the schema with 6 digits for each new time column that has at most 3 digits.

    ``before`` is the schema before a change; its columns keep their types, because files may store
    these types. ``before=None`` is for a new table.
    """
    known = frozenset[int]() if before is None else frozenset(_ids(before.fields))
    fields = tuple(_field(each, known) for each in schema.fields)
    for old, new in zip(schema.fields, fields, strict=True):
        if old != new:
            _log.info(
                "column %r gets the type %s because of 'iceberg.on-unpublishable' = 'rewrite': "
                "not all readers of Iceberg read %s",
                *(new.name, type_to_sql(new.type), type_to_sql(old.type)),
            )
    return replace(schema, fields=fields) if fields != schema.fields else schema


def _field(field: DataField, known: frozenset[int]) -> DataField:
    return replace(field, type=_type(field.type, known, is_new=field.id not in known))


def _type(kind: DataType, known: frozenset[int], *, is_new: bool) -> DataType:
    match kind:
        case AtomicType(name=name) if is_new and name in _TIMES and kind.precision <= _MOST_MILLIS:
            return replace(kind, parameters=(_MICROS,))
        case RowType(fields=fields):
            return replace(kind, fields=tuple(_field(each, known) for each in fields))
        case ArrayType(element=element) | MultisetType(element=element):
            return replace(kind, element=_type(element, known, is_new=is_new))
        case MapType(key=key, value=value):
            wider = _type(key, known, is_new=is_new)
            return replace(kind, key=wider, value=_type(value, known, is_new=is_new))
    return kind


def _ids(fields: tuple[DataField, ...]) -> Iterator[int]:
    for field in fields:
        yield field.id
        yield from _ids_in(field.type)


def _ids_in(kind: DataType) -> Iterator[int]:
    match kind:
        case RowType(fields=fields):
            yield from _ids(fields)
        case ArrayType(element=element) | MultisetType(element=element):
            yield from _ids_in(element)
        case MapType(key=key, value=value):
            yield from _ids_in(key)
            yield from _ids_in(value)
