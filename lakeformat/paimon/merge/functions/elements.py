# SPDX-License-Identifier: Apache-2.0
"""Turns the elements of lists and maps into flat columns, and equal values into equal numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.paimon.merge.functions.segments import combined
from lakeformat.rows.groups import KeyGroups, Mask, Positions

__all__ = [
    "Elements",
    "Pairs",
    "codes_of",
    "elements_of",
    "lists_of",
    "maps_of",
    "pairs_of",
    "slice_elements",
]


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of the lists or maps of one column, key by key, in merge order."""

    keys: Positions
    """The number of the key of each element."""
    rows: Positions
    """For each element, the position in ``KeyGroups.order`` of the row whose list or map has it."""
    places: Positions
    """The position of each element in the child array of the column, such as ``values.values``."""


def elements_of(values: pa.Array, groups: KeyGroups) -> Elements:
    """Return the elements of all lists or maps in ``values``, key by key; a null list has none."""
    offsets = np.asarray(values.offsets).astype(np.int64)
    begins, lengths = offsets[:-1], np.diff(offsets)
    if values.null_count:
        lengths = np.where(np.asarray(values.is_valid()), lengths, 0)
    begins, lengths = begins[groups.order], lengths[groups.order]
    rows = np.repeat(np.arange(len(groups.order)), lengths)
    before = np.cumsum(lengths) - lengths
    places = begins[rows] + np.arange(len(rows)) - before[rows]
    return Elements(groups.key_of[rows], rows, places)


def slice_elements(values: pa.Array, start: int, count: int) -> Elements:
    """Return the elements of the ``count`` lists from position ``start`` on; each list counts as a
    key of its own.
    """
    return elements_of(values, KeyGroups(start + np.arange(count), np.arange(count)))


def _offsets(keys: Positions, count: int) -> pa.Array:
    return pa.array(np.searchsorted(keys, np.arange(count + 1)).astype(np.int32))


def lists_of(elements: pa.Array, keys: Positions, has: Mask, kind: pa.DataType) -> pa.Array:
    """Build a list for each key from ``elements``, which are sorted by key.

    ``keys`` has the number of the key of each element. ``has`` is False for a key that gets null
    instead of a list. ``kind`` is the type of the lists.
    """
    mask = None if has.all() else pa.array(~has)
    return pa.ListArray.from_arrays(_offsets(keys, len(has)), elements, type=kind, mask=mask)


def maps_of(
    names: pa.Array, items: pa.Array, keys: Positions, has: Mask, kind: pa.DataType
) -> pa.Array:
    """Build a map for each primary key from its entries, which are sorted by primary key.

    ``names`` has the map keys of the entries, ``items`` their values, and ``keys`` the numbers of
    their primary keys. ``has`` is False for a primary key that gets null instead of a map. ``kind``
    is the type of the maps.
    """
    mask = None if has.all() else pa.array(~has)
    return pa.MapArray.from_arrays(_offsets(keys, len(has)), names, items, type=kind, mask=mask)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a key and an element of its lists; equal elements of one key are the same pair."""

    of: Positions
    """The number of the pair of each element; pairs are numbered in the order of their first
    element.
    """
    first: Positions
    """For each pair, the position of its first element."""


def pairs_of(keys: Positions, codes: Positions) -> Pairs:
    """Return the pairs of elements, given the key and the code of each element.

    Equal elements have equal codes: see ``codes_of``.
    """
    span = int(codes.max(initial=0)) + 1
    _, first, of = np.unique(keys * span + codes, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    number = np.empty(len(first), np.int64)
    number[by_appearance] = np.arange(len(first))
    return Pairs(number[of], first[by_appearance])


def codes_of(values: pa.Array) -> Positions:
    """Return a number for each value of any type; equal values, also nulls, get equal numbers."""
    kind = values.type
    if pa.types.is_struct(kind):
        members = [values.field(i) for i in range(kind.num_fields)]
        return _with_nulls(values, _combined_codes([codes_of(m) for m in members], len(values)))
    if pa.types.is_map(kind):
        return _with_nulls(values, _map_codes(values))
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _with_nulls(values, _list_codes(values))
    if pa.types.is_floating(kind):
        # Compared by bits, as Java compares boxed numbers: 0.0 differs from -0.0, and NaN equals
        # NaN.
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
        is_nan = pc.fill_null(pc.is_nan(values), False)
        values = pc.if_else(is_nan, pa.scalar(float("nan"), kind), values).view(bits)
    encoded = combined(pc.dictionary_encode(values, null_encoding="encode"))
    codes: Positions = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _with_nulls(values: pa.Array, codes: Positions) -> Positions:
    if values.null_count == 0:
        return codes
    return np.where(np.asarray(values.is_valid()), codes + 1, 0)


def _combined_codes(columns: list[Positions], count: int) -> Positions:
    codes = np.zeros(count, np.int64)
    for column in columns:
        _, codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
    return codes


def _list_codes(values: pa.Array) -> Positions:
    groups = KeyGroups(np.arange(len(values)), np.arange(len(values)))
    if pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    found = elements_of(values, groups)
    return _sequence_codes(found.rows, codes_of(values.values)[found.places], len(values))


def _map_codes(values: pa.Array) -> Positions:
    """Return a number for each map; equal maps get equal numbers, in any order of their entries."""
    groups = KeyGroups(np.arange(len(values)), np.arange(len(values)))
    found = elements_of(values, groups)
    entries = _combined_codes([codes_of(values.keys), codes_of(values.items)], len(values.keys))
    codes = entries[found.places]
    order = np.lexsort((codes, found.rows))
    return _sequence_codes(found.rows[order], codes[order], len(values))


def _sequence_codes(rows: Positions, codes: Positions, count: int) -> Positions:
    """Return a number for each list; equal lists get equal numbers.

    Elements are compared one position at a time.
    """
    lengths = np.bincount(rows, minlength=count)
    starts = np.cumsum(lengths) - lengths
    current = np.zeros(count, np.int64)
    for rank in range(int(lengths.max(initial=0))):
        having = np.flatnonzero(lengths > rank)
        step = _combined_codes([current[having], codes[starts[having] + rank]], len(having))
        # Larger than the number of any complete list.
        current[having] = step + int(current.max()) + 1
    return current
