# SPDX-License-Identifier: Apache-2.0
"""Values that a caller gives for a column: checks and conversions that change no value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.files.check_values import is_ascii
from lakeformat.rows.lossless_cast import check_rounding, means_the_same
from lakeformat.types.closest import closest

__all__ = ["cast_given", "check_given", "check_names", "first_refused"]

_INTEGER_DIGITS = 20
_FEW = 512
"""Up to this number of values, Arrow's full check is faster than a check of their bytes."""


def check_names(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise if rows have a column that the table lacks, or a column twice."""
    has = set(known)
    unknown = [name for name in names if name not in has]
    if unknown:
        raise InvalidRequestError(
            f"the table has no column {', '.join(map(repr, unknown))}; "
            f"its columns are {', '.join(known)}"
            f"{closest(unknown[0], known)}"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequestError(
            f"columns appear twice in the rows: {', '.join(repeated)}; rename or drop one of each"
        )


def cast_given(values: pa.Array, name: str, target: pa.DataType) -> pa.Array:
    """Return the values of a column in the type of the table; raise if one would change."""
    if values.type == target:
        return values
    if not means_the_same(values.type, target):
        raise InvalidRequestError(
            f"column {name!r} has type {values.type}, but the table needs {target}; "
            "convert it before writing"
        )
    try:
        if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
            # Arrow requires digits for the largest possible integer, not for the given ones.
            values = values.cast(pa.decimal128(_INTEGER_DIGITS, 0))
        stored = values.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as reason:
        raise InvalidRequestError(
            f"column {name!r} does not fit into {target} without loss: {reason}; change the values "
            "or the type of the column"
        ) from None
    check_rounding(values, stored, name)
    return stored


def first_refused(given: pa.Array, is_refused: Callable[[pa.Array], bool]) -> int | None:
    """Return the first row whose value is refused; None if the column as a whole is refused."""
    if not len(given) or is_refused(given.slice(0, 0)):
        return None
    first, end = (
        0,
        len(given),
    )  # rows before `first` are valid, one between `first` and `end` is not
    while end - first > 1:
        middle = (first + end) // 2
        if is_refused(given.slice(first, middle - first)):
            end = middle
        else:
            first = middle
    return first


def check_given(values: pa.Array, name: str) -> None:
    """Raise if a value is invalid for its type: Arrow arrays may hold any bytes and any digits.

    Sums of short decimals in a table may exceed their type, but input rows must fit.
    """
    try:
        for part in _doubtful_in(values):
            part.validate()
            if len(part) < _FEW or not (pa.types.is_string(part.type) and is_ascii(part)):
                part.validate(full=True)
    except pa.ArrowInvalid as reason:
        remedy = "convert texts to UTF-8 before writing, or store bytes in a BYTES column"
        if "Decimal" in str(reason):
            remedy = "give the column a type with more digits"
        raise InvalidRequestError(
            f"column {name!r} has an invalid {values.type} value: {reason}; {remedy}"
        ) from None


def _doubtful_in(values: pa.Array) -> Iterator[pa.Array]:
    """Yield all texts and decimals of a column; for nested columns only those in these rows."""
    if pa.types.is_string(values.type) or pa.types.is_decimal(values.type):
        yield values
    elif pa.types.is_map(values.type):
        first, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
        yield from _doubtful_in(values.keys.slice(first, end - first))
        yield from _doubtful_in(values.items.slice(first, end - first))
    elif pa.types.is_nested(values.type):
        parts = values.flatten()
        for part in parts if isinstance(parts, list) else [parts]:
            yield from _doubtful_in(part)
