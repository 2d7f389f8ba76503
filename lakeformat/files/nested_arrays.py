# SPDX-License-Identifier: Apache-2.0
"""Takes nested Arrow arrays apart, and builds them again with other children."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "as_list",
    "is_any_list",
    "list_around",
    "map_around",
    "map_entries",
    "present_entries",
    "struct_around",
    "struct_children",
    "with_members_below_nulls",
    "with_nullable_parts",
]

_OTHER_LISTS = (pa.types.is_large_list, pa.types.is_fixed_size_list)


def is_any_list(kind: pa.DataType) -> bool:
    """Return True for the list types of Arrow, except views."""
    return pa.types.is_list(kind) or any(is_form(kind) for is_form in _OTHER_LISTS)


def as_list(array: pa.Array) -> pa.Array:
    """Return a large or fixed-size list array as a list array with 32-bit offsets; other arrays are
    unchanged.

    A program that writes through Arrow, such as PyIceberg, may have stored another list type.
    """
    if pa.types.is_list(array.type) or not is_any_list(array.type):
        return array
    return array.cast(pa.list_(array.type.value_field))


def list_around(array: pa.Array, elements: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return ``array`` with other ``elements``, as an array of the type ``wanted``."""
    return pa.Array.from_buffers(
        wanted, len(array), array.buffers()[:2], array.null_count, array.offset, [elements]
    )


def map_around(array: pa.Array, keys: pa.Array, items: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return ``array`` with other ``keys`` and ``items``, as an array of the type ``wanted``.

    ``array`` may also be a list of pairs, which is the form of a map in some files.
    """
    fields = [wanted.key_field, wanted.item_field]
    entries = pa.StructArray.from_arrays([keys, items], fields=fields)
    return list_around(array, entries, wanted)


def map_entries(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the keys and items of a map array, or of a list of pairs.

    If ``array`` is a slice, the whole array's keys and items are returned, as ``map_around`` needs
    them.
    """
    if pa.types.is_map(array.type):
        return array.keys, array.items
    return array.values.field(0), array.values.field(1)


def present_entries(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the keys and items of the maps that are not null.

    If ``array`` is a slice, only the entries of its own maps are returned; ``MapArray.keys`` would
    return the keys of the whole array.
    """
    kind = array.type
    as_lists = pa.list_(pa.struct([kind.key_field, kind.item_field]))
    entries = array.cast(as_lists).flatten()
    return entries.field(0), entries.field(1)


def struct_children(array: pa.Array) -> list[pa.Array]:
    """Return the fields of a struct array; they are null where the struct is null."""
    if array.null_count:
        return list(array.flatten())
    return [array.field(number) for number in range(array.type.num_fields)]


def struct_around(array: pa.Array, children: list[pa.Array], wanted: pa.DataType) -> pa.Array:
    """Return ``array`` with ``children`` as its fields; the result is null where ``array``
    is null.
    """
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def with_members_below_nulls(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return ``array`` with a value in each member of a null ROW, at any depth.

    Arrays read from files have nulls there, and Arrow refuses to cast a null to a NOT NULL member.
    Parts that have no counterpart in the type ``wanted`` are unchanged. ``array`` must not have
    dictionary-encoded parts: they would get no value.
    """
    kind = array.type
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        return _row_with_members(array, {field.name: field.type for field in wanted})
    if is_any_list(kind) and is_any_list(wanted):
        array = as_list(array)
        elements = with_members_below_nulls(array.values, wanted.value_type)
        return list_around(array, elements, pa.list_(_holding(kind.value_field, elements)))
    if pa.types.is_map(kind) and pa.types.is_map(wanted):
        keys, items = map_entries(array)
        items = with_members_below_nulls(items, wanted.item_type)
        changed = pa.map_(kind.key_field, _holding(kind.item_field, items))
        return map_around(array, keys, items, changed)
    return array


def with_nullable_parts(kind: pa.DataType) -> pa.DataType:
    """Return the type with nullable elements, map values and members of ROWs at each level."""
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, _nullable(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_nullable(part) for part in kind])
    return kind


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(with_nullable_parts(field.type)).with_nullable(True)


def _holding(field: pa.Field, values: pa.Array) -> pa.Field:
    """Return ``field`` with the type of ``values``, which are the new values of the field."""
    return field.with_type(values.type)


def _row_with_members(rows: pa.Array, wanted: Mapping[str, pa.DataType]) -> pa.Array:
    filled = rows
    if rows.null_count:
        with_null = pa.concat_arrays([rows, pa.array([None], rows.type)])
        # Arrow's builder stores the lowest value of the type below a null.
        places = pa.array(np.arange(len(rows)))
        filled = with_null.take(pc.if_else(rows.is_null(), len(rows), places))
    members = [filled.field(number) for number in range(rows.type.num_fields)]
    for number, field in enumerate(rows.type):
        if field.name in wanted:
            members[number] = with_members_below_nulls(members[number], wanted[field.name])
    fields = [_holding(*each) for each in zip(rows.type, members, strict=True)]
    return struct_around(rows, members, pa.struct(fields))
