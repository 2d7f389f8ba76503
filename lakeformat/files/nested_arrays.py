# SPDX-License-Identifier: Apache-2.0
"""Splits nested Arrow arrays and rebuilds them around other children, without copies."""

from __future__ import annotations

import pyarrow as pa

__all__ = [
    "as_list",
    "is_any_list",
    "list_around",
    "map_around",
    "map_entries",
    "present_entries",
    "struct_around",
    "struct_children",
]

_OTHER_LISTS = (pa.types.is_large_list, pa.types.is_fixed_size_list)


def is_any_list(kind: pa.DataType) -> bool:
    """Return True for each of Arrow's list types."""
    return pa.types.is_list(kind) or any(is_form(kind) for is_form in _OTHER_LISTS)


def as_list(array: pa.Array) -> pa.Array:
    """Return a list column with offsets of 32 bits.

    A program that writes through Arrow, such as PyIceberg, may have stored another form.
    """
    if pa.types.is_list(array.type) or not is_any_list(array.type):
        return array
    return array.cast(pa.list_(array.type.value_field))


def list_around(array: pa.Array, elements: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the lists of ``array`` with ``elements`` in place of its own; ``wanted`` is the new
    type.
    """
    return pa.Array.from_buffers(
        wanted, len(array), array.buffers()[:2], array.null_count, array.offset, [elements]
    )


def map_around(array: pa.Array, keys: pa.Array, items: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the maps of ``array`` with ``keys`` and ``items`` in place of its own.

    ``array`` may also be a list of pairs, the form of a map in some files.
    """
    fields = [wanted.key_field, wanted.item_field]
    entries = pa.StructArray.from_arrays([keys, items], fields=fields)
    return list_around(array, entries, wanted)


def map_entries(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return keys and items of a map array or a list of pairs.

    They are not cut to the slice of the array, because ``map_around`` needs all of them.
    """
    if pa.types.is_map(array.type):
        return array.keys, array.items
    return array.values.field(0), array.values.field(1)


def present_entries(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return keys and items of the maps that are not null; ``MapArray.keys`` ignores slices."""
    kind = array.type
    as_lists = pa.list_(pa.struct([kind.key_field, kind.item_field]))
    entries = array.cast(as_lists).flatten()
    return entries.field(0), entries.field(1)


def struct_children(array: pa.Array) -> list[pa.Array]:
    """Return the fields of a struct array; null where the struct is null."""
    if array.null_count:
        return list(array.flatten())
    return [array.field(number) for number in range(array.type.num_fields)]


def struct_around(array: pa.Array, children: list[pa.Array], wanted: pa.DataType) -> pa.Array:
    """Return the structs of ``array`` with ``children`` as fields; null where ``array`` is null."""
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
