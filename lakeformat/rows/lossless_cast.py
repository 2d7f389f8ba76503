# SPDX-License-Identifier: Apache-2.0
"""Casts input values between Arrow types without changing a value."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.files.nested_arrays import (
    present_entries,
    struct_children,
    with_members_below_nulls,
    with_nullable_parts,
)
from lakeformat.types.type_kinds import COMPACT_DECIMAL_PRECISION

__all__ = [
    "cast_given",
    "first_refused",
    "short_decimals",
    "short_type",
]

_INTEGER_DIGITS = 20


def cast_given(
    values: pa.Array,
    name: str,
    target: pa.DataType,
    *,
    before: str = "writing",
    given: pa.DataType | None = None,
) -> pa.Array:
    """Return the values of a column as the type ``target``.

    Raise InvalidRequestError, which names the column, if the types do not match, or if the cast
    would change a value. ``before`` names the work that needs the values, for the error message.
    ``given`` is the type that the message shows. Default: the type of ``values``.
    """
    if values.type == target:
        return values
    if not _means_the_same(values.type, target):
        raise InvalidRequestError(
            f"column {name!r} has type {given or values.type}, but the table needs {target}; "
            f"convert it before {before}"
        )
    try:
        if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
            # Arrow requires digits for the largest possible integer, not for the given ones.
            values = values.cast(pa.decimal128(_INTEGER_DIGITS, 0))
        stored = _cast(values, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as reason:
        raise InvalidRequestError(
            f"column {name!r} does not fit into {target} without loss: {reason}; change the values "
            "or the type of the column"
        ) from None
    _check_rounding(values, stored, name)
    return stored


def first_refused(given: pa.Array, is_refused: Callable[[pa.Array], bool]) -> int | None:
    """Return the position of the first value that makes ``is_refused`` return True.

    ``is_refused`` must return True for ``given``. If ``is_refused`` returns True even for an empty
    array, no value is the cause, and the result is None.
    """
    if not len(given) or is_refused(given.slice(0, 0)):
        return None
    first, end = (
        0,
        len(given),
    )  # All rows before `first` are valid; a row between `first` and `end` is not.
    while end - first > 1:
        middle = (first + end) // 2
        if is_refused(given.slice(first, middle - first)):
            end = middle
        else:
            first = middle
    return first


def _means_the_same(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if a cast from ``source`` to ``target`` can be exact for at least some values."""
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        return _means_the_same(source.value_type, target)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return (source.tz is None) == (
            target.tz is None
        )  # times with and without a time zone are never equal
    if pa.types.is_decimal(source) or pa.types.is_decimal(target):
        return _is_exact(source) and _is_exact(target)  # floats are not exact
    return any(belongs(source) and belongs(target) for belongs in _ATOMIC) or _parts_mean_the_same(
        source, target
    )


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return values.cast(target)
    except pa.ArrowInvalid:
        if not pa.types.is_nested(target):
            raise
        # Arrow casts the elements of all rows, even those of rows outside of a slice.
        own = pa.concat_arrays([values])
        cast = own.cast(with_nullable_parts(target))
        return with_members_below_nulls(cast, target).cast(target)


def _check_rounding(given: pa.Array, stored: pa.Array, name: str) -> None:
    """Raise ``InvalidRequestError`` if the cast from ``given`` to ``stored`` rounded a float.

    Arrow reports no error in this case.
    """
    source, target = given.type, stored.type
    if source == target or pa.types.is_null(source):
        return
    if pa.types.is_dictionary(source):
        _check_rounding(given.dictionary_decode(), stored, name)
    elif pa.types.is_floating(source) and pa.types.is_floating(target):
        if target.bit_width < source.bit_width:
            _check_floats(given, stored, name)
    elif pa.types.is_list(target):
        _check_rounding(given.flatten(), stored.flatten(), f"{name}.element")
    elif pa.types.is_map(target):
        parts = zip(present_entries(given), present_entries(stored), ("key", "value"), strict=True)
        for before, after, part in parts:
            _check_rounding(before, after, f"{name}.{part}")
    elif pa.types.is_struct(target):
        members = struct_children(stored)
        for field, before in zip(source, struct_children(given), strict=True):
            after = members[target.get_field_index(field.name)]
            _check_rounding(before, after, f"{name}.{field.name}")


def _check_floats(given: pa.Array, stored: pa.Array, name: str) -> None:
    back = stored.cast(given.type)
    same = pc.or_(pc.equal(given, back), pc.and_(pc.is_nan(given), pc.is_nan(back)))
    changed = given.filter(pc.invert(same))
    if len(changed):
        raise InvalidRequestError(
            f"column {name!r} is a FLOAT, which cannot store {changed[0].as_py()!r} exactly: "
            "change it to DOUBLE, or round the values to float32 before writing"
        )


def short_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the 64-bit decimal type with the precision and scale of ``kind``.

    Return None if ``kind`` is not a 128-bit decimal type, or has too many digits.
    """
    if not pa.types.is_decimal128(kind) or kind.precision > COMPACT_DECIMAL_PRECISION:
        return None
    return pa.decimal64(kind.precision, kind.scale)


def short_decimals(values: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """Return the values of a column of decimals as 64-bit decimals; ``wanted`` is the column type.

    The type of ``values`` must be ``wanted`` or its 64-bit form. Return None for any other type,
    if ``wanted`` has no 64-bit form, or if a value has too many digits. The caller then checks each
    value.
    """
    short = short_type(wanted)
    if short is None or values.type not in (short, wanted):
        return None
    try:
        if values.type == short:
            values.validate(full=True)
        return values.cast(short)
    except pa.ArrowInvalid:  # the full check finds the row
        return None


def _parts_mean_the_same(source: pa.DataType, target: pa.DataType) -> bool:
    if _is_list(source) and _is_list(target):
        return _means_the_same(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        keys = _means_the_same(source.key_type, target.key_type)
        return keys and _means_the_same(source.item_type, target.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _fields_mean_the_same(source, target)
    return False


def _fields_mean_the_same(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if ``target`` has all fields of ``source``, with types that allow an exact cast.

    Arrow would silently drop the values of a field that ``target`` lacks.
    """
    known = {field.name: field.type for field in target}
    return all(
        field.name in known and _means_the_same(field.type, known[field.name]) for field in source
    )


def _is_number(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type))


def _is_exact(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow_type) or pa.types.is_decimal(arrow_type))


def _is_text(arrow_type: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(kind(arrow_type) for kind in kinds)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    kinds = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(kind(arrow_type) for kind in kinds)


def _is_list(arrow_type: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(kind(arrow_type) for kind in kinds)


_ATOMIC = (
    pa.types.is_boolean,
    _is_number,
    _is_text,
    _is_bytes,
    pa.types.is_date,
    pa.types.is_time,
)
