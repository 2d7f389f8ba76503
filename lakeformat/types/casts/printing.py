# SPDX-License-Identifier: Apache-2.0
"""Converts values to text as Java does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.casts.floor_division import floor_divide
from lakeformat.types.casts.rules import INTEGERS, TIMESTAMPS
from lakeformat.types.casts.strings import is_unlimited
from lakeformat.types.java_numbers import java_double_text, java_float_text
from lakeformat.types.types import (
    STRING,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    RowType,
    TypeName,
)

__all__ = ["atomic_to_text", "nested_to_text"]

T = TypeName
Cast = Callable[[pa.Array, DataType, DataType], pa.Array]
MILLIS_PER_SECOND = 1_000
_DAY_UNITS = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_DIGITS = [chr(ord("0") + digit) for digit in range(-9, 10)]
_UNIT_DIGITS = {"ms": 3, "us": 6, "ns": 9}


def atomic_to_text(array: pa.Array, stored: AtomicType) -> pa.Array | None:
    """Return the values as a STRING array; None for types that Java does not print."""
    name = stored.name
    if name is T.BOOLEAN or name in INTEGERS:
        return array.cast(pa.string())
    if name is T.DECIMAL:
        return _plain_decimals(array)
    if name in (T.FLOAT, T.DOUBLE):
        return _floats(array)
    if name is T.DATE:
        return _dates(array.cast(pa.int32()).cast(pa.int64()))
    if name is T.TIME:
        return _times(array.cast(pa.int32()).cast(pa.int64()), stored.precision)
    if name in TIMESTAMPS:
        return _timestamps(array, stored.precision)
    return None


def nested_to_text(array: pa.Array, stored: DataType, cast: Cast) -> pa.Array | None:
    """Print arrays as ``[a, b]``, maps as ``{k -> v}`` and rows as ``{a, b}``; return None for
    other types.

    ``cast`` is the function that casts the parts to STRING.
    """
    match stored:
        case ArrayType(element=element):
            elements = _shown(array.flatten(), element, cast)
            lengths = pc.list_value_length(array).to_pylist()
            return _bracketed(lengths, elements, "[", "]")
        case MapType(key=key, value=value):
            entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
            flat = entries.flatten()
            keys, values = _shown(flat.field(0), key, cast), _shown(flat.field(1), value, cast)
            pairs = [f"{k} -> {v}" for k, v in zip(keys, values, strict=True)]
            return _bracketed(pc.list_value_length(entries).to_pylist(), pairs, "{", "}")
        case RowType(fields=fields):
            parts = zip(array.flatten(), fields, strict=True)
            columns = [_shown(part, field.type, cast) for part, field in parts]
            rows = zip(*columns, array.is_valid().to_pylist(), strict=True)
            texts = ["{" + ", ".join(row[:-1]) + "}" if row[-1] else None for row in rows]
            return pa.array(texts, pa.string())
    return None


def _shown(array: pa.Array, stored: DataType, cast: Cast) -> list[str]:
    is_string = isinstance(stored, AtomicType) and stored.name is T.VARCHAR and is_unlimited(stored)
    texts = array if is_string else cast(array, stored, STRING)
    return ["null" if text is None else text for text in texts.to_pylist()]


def _bracketed(
    lengths: Iterable[int | None], items: list[str], opening: str, closing: str
) -> pa.Array:
    texts: list[str | None] = []
    start = 0
    for length in lengths:
        if length is None:
            texts.append(None)
        else:
            texts.append(opening + ", ".join(items[start : start + length]) + closing)
            start += length
    return pa.array(texts, pa.string())


def _plain_decimals(array: pa.Array) -> pa.Array:
    """Print decimals without an exponent.

    Arrow prints small decimals of a large scale with an exponent.
    """
    texts = array.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    plain = [None if value is None else f"{value:f}" for value in array.to_pylist()]
    return pa.array(plain, pa.string())


def _floats(array: pa.Array) -> pa.Array:
    """Print floats as Java does, most of them with Arrow.

    Zero, NaN, infinity, and floats that need an exponent in Java or in Arrow are printed one by
    one.
    """
    magnitudes = pc.abs(array)
    is_plain = pc.and_(pc.greater_equal(magnitudes, 1e-3), pc.less(magnitudes, 1e7))
    texts = array.cast(pa.string())
    is_plain = pc.and_(is_plain, pc.invert(pc.match_substring(texts, "e")))
    whole = pc.invert(pc.match_substring(texts, "."))
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    odd = np.flatnonzero(pc.invert(pc.fill_null(is_plain, True)).to_numpy(zero_copy_only=False))
    if not len(odd):
        return texts
    show = java_float_text if pa.types.is_float32(array.type) else java_double_text
    shown = [show(value) for value in array.take(pa.array(odd)).to_pylist()]
    mask = np.zeros(len(array), dtype=bool)
    mask[odd] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(shown, pa.string()))


def _timestamps(array: pa.Array, precision: int) -> pa.Array:
    unit = array.type.unit
    counts = array.view(pa.int64())
    days = floor_divide(counts, _DAY_UNITS[unit])
    rest = pc.subtract(counts, pc.multiply(days, _DAY_UNITS[unit]))
    per_second = 10 ** _UNIT_DIGITS[unit]
    seconds = pc.divide(rest, per_second)
    clock = _joined(" ", _dates(days), _clock(seconds))
    if precision == 0:
        return clock
    fraction = _padded(pc.subtract(rest, pc.multiply(seconds, per_second)), _UNIT_DIGITS[unit])
    return _joined(".", clock, pc.utf8_slice_codeunits(fraction, 0, precision))


def _times(millis: pa.Array, precision: int) -> pa.Array:
    """Print times without trailing zeros.

    With a precision above 0 at least one fractional digit is kept.
    """
    seconds = pc.divide(millis, MILLIS_PER_SECOND)
    clock = _clock(seconds)
    if precision == 0:
        return clock
    rest = _padded(pc.subtract(millis, pc.multiply(seconds, MILLIS_PER_SECOND)), 3)
    trimmed = pc.utf8_rtrim(rest, "0")
    shown = pc.if_else(pc.equal(trimmed, ""), pa.scalar("0"), trimmed)
    return _joined(".", clock, pc.utf8_slice_codeunits(shown, 0, precision))


def _clock(seconds: pa.Array) -> pa.Array:
    minutes = pc.divide(seconds, 60)
    hours = pc.divide(minutes, 60)
    return _joined(
        ":",
        _padded(hours, 2),
        _padded(pc.subtract(minutes, pc.multiply(hours, 60)), 2),
        _padded(pc.subtract(seconds, pc.multiply(minutes, 60)), 2),
    )


def _dates(days: pa.Array) -> pa.Array:
    dates = days.cast(pa.int32()).cast(pa.date32())
    return _joined(
        "-", _years(pc.year(dates)), _padded(pc.month(dates), 2), _padded(pc.day(dates), 2)
    )


def _years(years: pa.Array) -> pa.Array:
    """Print years with four digits, as Java does.

    For a year before 0, Java subtracts each digit from the character '0', which gives ``/`` for 1.
    """
    places = [pc.divide(years, 10**power) for power in (3, 2, 1, 0)]
    digits = [pc.subtract(place, pc.multiply(pc.divide(place, 10), 10)) for place in places]
    texts = pa.array(_DIGITS)
    return _joined("", *(texts.take(pc.add(digit, 9)) for digit in digits))


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), width, "0")


def _joined(separator: str, *parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)
