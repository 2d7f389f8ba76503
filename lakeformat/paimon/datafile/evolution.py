# SPDX-License-Identifier: Apache-2.0
"""Converts rows of an older schema to a newer one; fields are matched by id.

A field that the file lacks becomes null, even if the file has another column of the same name. The
fields of a ROW are matched in the same way, also inside of an ARRAY or a MAP.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.files.nested_arrays import (
    list_around,
    map_around,
    map_entries,
    struct_around,
    struct_children,
)
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts import cast_array
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    with_nullability,
)

__all__ = ["evolve_array", "find_sources"]


def find_sources(
    stored: Sequence[DataField], wanted: Sequence[DataField]
) -> list[DataField | None]:
    """Return for each wanted field the stored field of the same id; None if the file lacks it."""
    by_id = {field.id: field for field in stored}
    return [by_id.get(field.id) for field in wanted]


def evolve_array(array: pa.Array, stored: DataType, wanted: DataType) -> pa.Array:
    """Convert values of the type ``stored`` to the type ``wanted``.

    The Arrow types before and after are those of ``to_arrow_type``. Raise UnsupportedError if the
    type of a map's keys or of a multiset's elements differs.
    """
    if stored == wanted:
        return array
    target = to_arrow_type(wanted)
    match stored, wanted:
        case RowType(fields=old), RowType(fields=new):
            return _evolve_row(array, old, new, target)
        case ArrayType(element=before), ArrayType(element=after):
            return list_around(array, evolve_array(array.values, before, after), target)
        case MapType(key=key, value=before), MapType(key=new_key, value=after):
            _require_same("the keys of a map", key, new_key)
            keys, items = map_entries(array)
            return map_around(array, keys, evolve_array(items, before, after), target)
        case MultisetType(element=key), MultisetType(element=new_key):
            _require_same("the elements of a multiset", key, new_key)
            return array
    if with_nullability(stored, nullable=True) == with_nullability(wanted, nullable=True):
        return array
    return cast_array(array, stored, wanted)


def _evolve_row(
    array: pa.Array, old: tuple[DataField, ...], new: tuple[DataField, ...], target: pa.DataType
) -> pa.Array:
    positions = {field.id: position for position, field in enumerate(old)}
    children = struct_children(array)
    evolved = []
    for field, part in zip(new, target, strict=True):
        position = positions.get(field.id)
        if position is None:
            evolved.append(pa.nulls(len(array), part.type))
        else:
            evolved.append(evolve_array(children[position], old[position].type, field.type))
    return struct_around(array, evolved, target)


def _require_same(parts: str, key: DataType, new_key: DataType) -> None:
    if with_nullability(key, nullable=True) != with_nullability(new_key, nullable=True):
        raise UnsupportedError(
            f"{parts} of type {type_to_sql(key)} cannot become {type_to_sql(new_key)}: "
            "read only the other columns, or rewrite the files with another engine"
        )
