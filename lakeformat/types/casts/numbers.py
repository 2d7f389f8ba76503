# SPDX-License-Identifier: Apache-2.0
"""Casts numbers to numbers as Java narrows them: integers wrap, floats stop at the limit."""

from __future__ import annotations

from contextlib import suppress
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.types import AtomicType, TypeName

__all__ = [
    "decimal_from_text",
    "from_decimal",
    "from_float",
    "from_integer",
    "rescale",
    "to_boolean",
]

T = TypeName
_FLOATS = (T.FLOAT, T.DOUBLE)
_COMPACT_DIGITS = 18
_WIDE_DIGITS, _WIDE_SCALE = 76, 38
_LONG_MIN, _LONG_END = -(2.0**63), 2.0**63
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)


def to_boolean(array: pa.Array) -> pa.Array:
    """Convert integers to booleans: zero is false."""
    return pc.not_equal(array, pa.scalar(0, array.type))


def from_integer(array: pa.Array, wanted: AtomicType) -> pa.Array:
    """Convert integers to any number type.

    In an integer type, a number that does not fit wraps, as in Java; in DECIMAL it becomes null.
    """
    if wanted.name is T.DECIMAL:
        return rescale(array.cast(pa.int64()).cast(pa.decimal128(19, 0)), wanted)
    return array.cast(to_arrow_type(wanted), safe=False)


def from_decimal(array: pa.Array, stored: AtomicType, wanted: AtomicType) -> pa.Array:
    """Convert decimals to any number type.

    In an integer type the fraction is cut, and a number that does not fit wraps. In DECIMAL a
    number with too many digits becomes null.
    """
    if wanted.name is T.DECIMAL:
        return rescale(array, wanted)
    if wanted.name not in _FLOATS:
        whole = pc.trunc(array).cast(pa.decimal128(38, 0))
        return _low_words(whole).cast(to_arrow_type(wanted), safe=False)
    if stored.precision <= _COMPACT_DIGITS:
        numbers = pc.divide(_low_words(array).cast(pa.float64()), 10.0**stored.scale)
    else:  # by way of text: Arrow's own cast does not round to the nearest
        numbers = array.cast(pa.string()).cast(pa.float64())
    return numbers.cast(to_arrow_type(wanted), safe=False)


def from_float(array: pa.Array, wanted: AtomicType) -> pa.Array:
    """Convert FLOAT and DOUBLE to any number type, as Java does.

    For an integer type NaN becomes 0, and a number out of range becomes the limit of BIGINT or INT.
    For TINYINT and SMALLINT the number first becomes an INT; an INT that does not fit wraps. For
    DECIMAL a number with too many digits becomes null; NaN and infinity raise
    ``InvalidRequestError``.
    """
    if wanted.name in _FLOATS:
        return array.cast(to_arrow_type(wanted), safe=False)
    if wanted.name is T.DECIMAL:
        return _float_to_decimal(array.cast(pa.float64()), wanted)
    values = _filled(array).astype(np.float64)
    values = np.where(np.isnan(values), 0.0, values)
    if wanted.name is T.BIGINT:
        whole = _saturated_longs(values)
    else:  # Java converts to INT first, then to the narrower type
        whole = np.clip(np.trunc(values), _INT_MIN, _INT_MAX).astype(np.int64)
    return _with_nulls_of(array, whole).cast(to_arrow_type(wanted), safe=False)


def rescale(array: pa.Array, wanted: AtomicType) -> pa.Array:
    """Round decimals half up to the scale of ``wanted``.

    A decimal with too many digits for the precision of ``wanted`` becomes null.
    """
    target = to_arrow_type(wanted)
    gained = wanted.scale - array.type.scale
    if 0 <= gained <= wanted.precision - array.type.precision:
        with suppress(
            pa.ArrowInvalid
        ):  # a 64-bit decimal with more digits than its type may not fit
            return array.cast(target)
    wide = pa.decimal256(_WIDE_DIGITS, max(array.type.scale, wanted.scale))
    rounded = pc.round(array.cast(wide), wanted.scale, round_mode="half_towards_infinity")
    room = wanted.precision - wanted.scale
    if room + wide.scale < _WIDE_DIGITS:  # else every value Arrow can hold fits
        limit = pa.scalar(Decimal(1).scaleb(room), wide)
        rounded = pc.if_else(pc.less(pc.abs(rounded), limit), rounded, pa.scalar(None, wide))
    return rounded.cast(target)


def decimal_from_text(array: pa.Array, wanted: AtomicType) -> pa.Array:
    """Parse texts of numbers as decimals, like Java's ``new BigDecimal``.

    The decimals are rounded as in ``rescale``.
    """
    try:
        return rescale(array.cast(pa.decimal256(_WIDE_DIGITS, _WIDE_SCALE)), wanted)
    except pa.ArrowInvalid:
        # Texts with more digits than Arrow can hold are rare, so these are parsed one by one.
        found = [_parse_decimal(text, wanted) for text in array.to_pylist()]
        return pa.array(found, to_arrow_type(wanted))


def _parse_decimal(text: str | None, wanted: AtomicType) -> Decimal | None:
    if text is None:
        return None
    number = Decimal(text)
    if number.adjusted() > wanted.precision:
        return None
    rounded = number.quantize(Decimal(1).scaleb(-wanted.scale), context=_EXACT)
    return rounded if len(rounded.as_tuple().digits) <= wanted.precision else None


def _float_to_decimal(array: pa.Array, wanted: AtomicType) -> pa.Array:
    """Convert floats to decimals by way of their texts.

    A float that is too large for the type becomes null. Raise ``InvalidRequestError`` for NaN and
    infinity.
    """
    if not pc.all(pc.is_finite(array)).as_py() and len(array) > array.null_count:
        raise InvalidRequestError(
            "NaN and infinity cannot become DECIMAL: replace these values first, or keep the type "
            "FLOAT or DOUBLE"
        )
    fits = pc.less(pc.abs(array), 10.0 ** (wanted.precision - wanted.scale))
    return decimal_from_text(pc.if_else(fits, array, None).cast(pa.string()), wanted)


def _saturated_longs(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    inside = (values >= _LONG_MIN) & (values < _LONG_END)
    whole = np.where(inside, values, 0).astype(np.int64)
    ends = np.where(values > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
    return np.where(inside, whole, ends)


def _low_words(array: pa.Array) -> pa.Array:
    """Return the low 64 bits of each unscaled decimal, as Java's conversion to ``long`` does."""
    content = np.frombuffer(array.buffers()[1] or b"", np.int64)
    return _with_nulls_of(array, content[2 * array.offset : 2 * (array.offset + len(array)) : 2])


def _filled(array: pa.Array) -> npt.NDArray[np.generic]:
    filled: npt.NDArray[np.generic] = pc.fill_null(array, pa.scalar(0, array.type)).to_numpy(
        zero_copy_only=False
    )
    return filled


def _with_nulls_of(array: pa.Array, values: npt.NDArray[np.int64]) -> pa.Array:
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, pa.int64(), mask=mask)
