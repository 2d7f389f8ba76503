# SPDX-License-Identifier: Apache-2.0
"""Finds changes of types after which readers of Iceberg read other values than Paimon.

Several types of Paimon, such as ``INT`` and ``SMALLINT``, become the same type in Iceberg. After a
change between two such types, Paimon converts the values in older files to the new type, and cuts
or pads them. Readers of Iceberg see no change of the type, and return the values unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.paimon.schema import TableSchema
from lakeformat.types.type_kinds import type_text
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

__all__ = ["narrowed_columns"]

_INTEGERS = (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT)
"""The types that are ``int`` in Iceberg, the narrowest first."""
_PADDED = (TypeName.CHAR, TypeName.BINARY)
_WITH_LENGTH = (*_PADDED, TypeName.VARCHAR, TypeName.VARBINARY)
_TIMES = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)


def narrowed_columns(before: TableSchema, after: TableSchema) -> Iterator[str]:
    """Yield a text for each column whose values in older files are cut or padded by Paimon.

    Columns whose type also changes in Iceberg are left out.
    """
    for column, was, kind in _in_fields("", before.fields, after.fields):
        if _is_narrowed(was, kind):
            yield (
                f"column {column!r} changes from {type_text(was)} to {type_text(kind)} in schema "
                f"{after.id}"
            )


_Changed = Iterator[tuple[str, AtomicType, AtomicType]]
"""The path of a column, its type before a change, and its type after it."""


def _in_fields(
    prefix: str, before: tuple[DataField, ...], after: tuple[DataField, ...]
) -> _Changed:
    earlier = {field.id: field.type for field in before}
    for field in after:
        if field.id in earlier:
            yield from _in_types(prefix + field.name, earlier[field.id], field.type)


def _in_types(column: str, before: DataType, after: DataType) -> _Changed:
    match before, after:
        case AtomicType(), AtomicType():
            yield column, before, after
        case RowType(), RowType():
            yield from _in_fields(f"{column}.", before.fields, after.fields)
        case ArrayType(), ArrayType():
            yield from _in_types(f"{column}.element", before.element, after.element)
        case MultisetType(), MultisetType():
            yield from _in_types(f"{column}.element", before.element, after.element)
        case MapType(), MapType():
            yield from _in_types(f"{column}.key", before.key, after.key)
            yield from _in_types(f"{column}.value", before.value, after.value)


def _is_narrowed(before: AtomicType, after: AtomicType) -> bool:
    if before.name in _INTEGERS and after.name in _INTEGERS:
        return _INTEGERS.index(after.name) < _INTEGERS.index(before.name)
    if before.name in _WITH_LENGTH and after.name in _WITH_LENGTH:
        if after.name in _PADDED:
            return (before.name, before.length) != (after.name, after.length)
        return after.length < before.length
    return before.name == after.name and after.name in _TIMES and after.precision < before.precision
