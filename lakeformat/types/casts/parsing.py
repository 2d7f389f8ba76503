# SPDX-License-Identifier: Apache-2.0
"""Parses texts as values of other types, like Java; an unreadable text never becomes a null."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts.numbers import decimal_from_text
from lakeformat.types.casts.readable import require_readable
from lakeformat.types.casts.rules import INTEGERS, TIMESTAMPS
from lakeformat.types.casts.strings import fit_bytes
from lakeformat.types.casts.text_times import parse_dates, parse_times, parse_timestamps
from lakeformat.types.types import AtomicType, TypeName

__all__ = ["parse_text"]

T = TypeName
_TRUE = ["t", "true", "y", "yes", "1"]
_FALSE = ["f", "false", "n", "no", "0"]
# Java accepts a fraction in the text of an integer, and drops it.
_INTEGER = r"^(?P<sign>[+-]?)0*(?P<digits>[0-9]*)(?:\.[0-9]*)?$"
_DECIMAL = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_WORDS = {"NaN": "nan", "Infinity": "inf"}
_FLOAT_ODD = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<word>NaN|Infinity)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    r"|0[xX][\da-fA-F]*\.?[\da-fA-F]*[pP][+-]?\d+)[fFdD]?)"
)


def parse_text(array: pa.Array, wanted: AtomicType) -> pa.Array | None:
    """Cast CHAR and VARCHAR to any other type; return None if Java has no such cast.

    Raise ``InvalidRequestError`` for a text that Java cannot parse; a number out of range may raise
    ``ArrowInvalid`` instead.
    """
    name = wanted.name
    if name in (T.BINARY, T.VARBINARY):
        return fit_bytes(array.cast(pa.binary()), wanted)
    if name in INTEGERS:
        return _integers(array, wanted)
    if name in TIMESTAMPS:
        return parse_timestamps(array, wanted, integers=_longs)
    parsers: dict[TypeName, Callable[[pa.Array, AtomicType], pa.Array]] = {
        T.BOOLEAN: _booleans,
        T.FLOAT: _floats,
        T.DOUBLE: _floats,
        T.DECIMAL: _decimals,
        T.DATE: lambda texts, _: parse_dates(texts, integers=_ints),
        T.TIME: lambda texts, _: parse_times(texts, integers=_ints),
    }
    parser = parsers.get(name)
    return None if parser is None else parser(array, wanted)


def _booleans(array: pa.Array, wanted: AtomicType) -> pa.Array:
    lower = pc.utf8_lower(array)
    is_true = pc.is_in(lower, pa.array(_TRUE))
    known = pc.or_(is_true, pc.is_in(lower, pa.array(_FALSE)))
    require_readable(known, array, wanted.name)
    return pc.if_else(array.is_valid(), is_true, None)


def _integers(array: pa.Array, wanted: AtomicType) -> pa.Array:
    parts = pc.extract_regex(array, _INTEGER)
    require_readable(parts.is_valid(), array, wanted.name)
    require_readable(pc.invert(pc.is_in(array, pa.array(["", "+", "-"]))), array, wanted.name)
    sign, digits = (part for part in parts.flatten())
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    sign = pc.if_else(pc.equal(sign, "-"), "-", "")
    numbers = pc.binary_join_element_wise(sign, digits, "")
    try:
        return numbers.cast(to_arrow_type(wanted))
    except pa.ArrowInvalid:
        raise pa.ArrowInvalid(f"it is outside of the range of {wanted.name}") from None


def _ints(array: pa.Array) -> pa.Array:
    return _integers(array, AtomicType(T.INT))


def _longs(array: pa.Array) -> pa.Array:
    return _integers(array, AtomicType(T.BIGINT))


def _decimals(array: pa.Array, wanted: AtomicType) -> pa.Array:
    require_readable(pc.match_substring_regex(array, _DECIMAL), array, wanted.name)
    return decimal_from_text(array, wanted)


def _floats(array: pa.Array, wanted: AtomicType) -> pa.Array:
    target = to_arrow_type(wanted)
    is_odd = pc.fill_null(pc.invert(pc.match_substring_regex(array, _DECIMAL)), False)
    if not pc.any(is_odd).as_py():
        return array.cast(target)
    odd = array.filter(is_odd)
    read = [_odd_float(text) for text in odd.to_pylist()]
    require_readable(pa.array([value is not None for value in read]), odd, wanted.name)
    plain = pc.if_else(is_odd, "0", array).cast(target)
    return pc.replace_with_mask(plain, is_odd, pa.array(np.array(read, float)).cast(target))


def _odd_float(text: str) -> float | None:
    """Return the number in an unusual spelling that Java accepts; None for any other text.

    Unusual are surrounding spaces, words such as NaN, a type suffix and hexadecimal digits.
    """
    found = _FLOAT_ODD.fullmatch(text.strip("".join(map(chr, range(33)))))
    if found is None:
        return None
    if found["word"]:
        return float(found["sign"] + _WORDS[found["word"]])
    if "x" in found["number"].lower():
        return _hexadecimal(found["sign"] + found["number"])
    return float(found["sign"] + found["number"])


def _hexadecimal(text: str) -> float | None:
    """Return the value of a hexadecimal number; None for a text without digits.

    A number that is out of range becomes infinite.
    """
    try:
        return float.fromhex(text)
    except OverflowError:
        return -inf if text.startswith("-") else inf
    except ValueError:
        return None
