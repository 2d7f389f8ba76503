# SPDX-License-Identifier: Apache-2.0
"""Parses texts as dates, times and timestamps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts.readable import require_readable
from lakeformat.types.casts.timestamps import from_units, to_units
from lakeformat.types.types import AtomicType, TypeName

__all__ = ["parse_dates", "parse_times", "parse_timestamps"]

Integers = Callable[[pa.Array], pa.Array]
Longs = npt.NDArray[np.int64]

MILLIS_PER_DAY = 86_400_000
# A text that is only a number is the stored value itself. Missing parts get their lowest value.
_NUMERIC = r"^-?[0-9]+$"
_DATE = (
    r"^[\x00- ]*(?P<year>[0-9]+)[\x00- ]*"
    r"(?:-[\x00- ]*(?P<month>[0-9]+)[\x00- ]*(?:-[\x00- ]*(?P<day>[0-9]+)[\x00- ]*)?)?$"
)
_TIME = (
    r"^[\x00- ]*(?P<hour>[0-9]+)[\x00- ]*(?::[\x00- ]*(?P<minute>[0-9]+)[\x00- ]*"
    r"(?::[\x00- ]*(?P<second>[0-9]+)[\x00- ]*(?:\.[\x00- ]*(?P<fraction>[0-9]*)[\x00- ]*)?)?)?$"
)
_TIMESTAMP = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?: (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<f>[0-9]{0,9}))?"
    r"|T(?P<h>[0-9]{1,2}):(?P<m>[0-9]{1,2})(?::(?P<s>[0-9]{1,2})(?:\.(?P<g>[0-9]{0,9}))?)?)?$"
)
_PER_MILLI = {0: 1, 3: 1, 6: 1_000, 9: 1_000_000}


def parse_dates(array: pa.Array, *, integers: Integers) -> pa.Array:
    """Parse year, month and day; text after a space is ignored, so a timestamp is accepted.

    A missing month or day becomes 1. ``integers`` parses texts that are only a number: days since
    1970. Raise ``InvalidRequestError`` for any other text.
    """
    is_number = pc.match_substring_regex(array, _NUMERIC)
    days = integers(pc.if_else(is_number, array, "0")).cast(pa.int64())
    if not pc.all(is_number).as_py():
        date_part = pc.replace_substring_regex(array, r"^([^ ]+) .*$", r"\1")
        parts = pc.extract_regex(pc.if_else(is_number, "1970", date_part), _DATE)
        require_readable(parts.is_valid(), array, "DATE")
        year, month, day = (_whole(part, 1) for part in parts.flatten())
        require_readable(_is_date(array, year, month, day, first_year=0), array, "DATE")
        days = pc.if_else(is_number, days, _like(array, _days(year, month, day)))
    return days.cast(pa.int32()).cast(pa.date32())


def parse_times(array: pa.Array, *, integers: Integers) -> pa.Array:
    """Parse hours, minutes, seconds and a fraction, which is rounded to milliseconds.

    ``integers`` parses texts that are only a number: milliseconds of the day. Raise
    ``InvalidRequestError`` for any other text, such as a time with a time zone.
    """
    is_number = pc.match_substring_regex(array, _NUMERIC)
    millis = integers(pc.if_else(is_number, array, "0")).cast(pa.int64())
    if not pc.all(is_number).as_py():
        parts = pc.extract_regex(pc.if_else(is_number, "0:0", array), _TIME)
        require_readable(parts.is_valid(), array, "TIME")
        hour, minute, second, fraction = parts.flatten()
        clock = (_whole(hour, 0) * 60 + _whole(minute, 0)) * 60 + _whole(second, 0)
        texts = pc.utf8_rpad(pc.fill_null(fraction, ""), 4, "0")
        digits = _whole(pc.utf8_slice_codeunits(texts, 0, 4), 0)
        parsed = clock * 1000 + (digits + 5) // 10
        millis = pc.if_else(is_number, millis, _like(array, parsed))
    in_day = pc.and_(pc.greater_equal(millis, 0), pc.less(millis, MILLIS_PER_DAY))
    require_readable(in_day, array, "TIME")
    return millis.cast(pa.int32()).cast(pa.time32("ms"))


def parse_timestamps(array: pa.Array, wanted: AtomicType, *, integers: Integers) -> pa.Array:
    """Parse ``2024-01-31 01:02:03.4``, also with a T between date and time.

    Days up to 31 are accepted in every month: February 31 becomes the last day of February. For
    TIMESTAMP, ``integers`` parses texts that are only a number: a count since 1970 in the unit of
    the precision. Raise ``InvalidRequestError`` for any other text, and if only some of the texts
    are numbers.
    """
    is_zoned = wanted.name is TypeName.TIMESTAMP_LTZ
    is_number = pc.match_substring_regex(array, _NUMERIC)
    if not is_zoned and pc.any(is_number).as_py():
        if not pc.all(is_number).as_py():
            raise InvalidRequestError(
                "some texts are numbers and some are not; write all of them in one form"
            )
        return _from_epoch(integers(array), wanted)
    parts = pc.extract_regex(array, _TIMESTAMP)
    require_readable(parts.is_valid(), array, wanted.name)
    year, month, day, *clocks = parts.flatten()
    hour, minute, second, fraction = (
        pc.if_else(pc.equal(clocks[number], ""), clocks[number + 4], clocks[number])
        for number in range(4)
    )
    date = _whole(year, 1), _whole(month, 1), _whole(day, 1)
    clock = _whole(hour, 0), _whole(minute, 0), _whole(second, 0)
    is_good = _is_clock(array, *clock)
    is_good = pc.and_(is_good, _is_date(array, date[0], date[1], np.ones_like(date[2]), 1))
    is_good = pc.and_(is_good, _like(array, (date[2] >= 1) & (date[2] <= 31)))
    require_readable(is_good, array, wanted.name)
    days = _days(date[0], date[1], np.minimum(date[2], _month_length(date[0], date[1])))
    seconds = ((days * 24 + clock[0]) * 60 + clock[1]) * 60 + clock[2]
    return _assemble(array, seconds, fraction, wanted)


def _assemble(array: pa.Array, seconds: Longs, fraction: pa.Array, wanted: AtomicType) -> pa.Array:
    """Return timestamps from seconds since 1970 and the digits of their fractions.

    Digits beyond the precision of ``wanted`` are cut off.
    """
    target = to_arrow_type(wanted)
    digits = {"ms": 3, "us": 6, "ns": 9}[target.unit]
    texts = pc.utf8_rpad(pc.fill_null(fraction, ""), digits, "0")
    parts = _whole(pc.utf8_slice_codeunits(texts, 0, digits), 0)
    step = to_units(wanted.precision, target.unit)
    counts = pc.multiply_checked(_like(array, seconds), 10**digits)
    return pc.add_checked(counts, _like(array, parts // step * step)).view(target)


def _from_epoch(counts: pa.Array, wanted: AtomicType) -> pa.Array:
    """Return timestamps from numbers that count the time since 1970 in the unit of the type.

    Raise ``InvalidRequestError`` for a precision other than 0, 3, 6 and 9, because Java has no unit
    for it.
    """
    if wanted.precision not in _PER_MILLI:
        raise InvalidRequestError(
            f"a number cannot be read as TIMESTAMP({wanted.precision}); write a time such as "
            "2024-01-31 01:02:03"
        )
    if wanted.precision == 0:
        counts = pc.multiply_checked(counts, 1_000)
    return from_units(counts, _PER_MILLI[wanted.precision], to_arrow_type(wanted))


def _whole(texts: pa.Array, missing: int) -> Longs:
    """Convert digits to numbers; an empty or null text becomes ``missing``."""
    filled = pc.fill_null(texts, "")
    digits = pc.if_else(pc.equal(filled, ""), str(missing), filled)
    found: Longs = digits.cast(pa.int64()).to_numpy()
    return found


def _like(array: pa.Array, values: npt.NDArray[np.generic]) -> pa.Array:
    """Return ``values`` as an array that is null where ``array`` is null."""
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, mask=mask)


def _is_date(array: pa.Array, year: Longs, month: Longs, day: Longs, first_year: int) -> pa.Array:
    in_year = (year >= first_year) & (year <= 9999) & (month >= 1) & (month <= 12)
    last = _month_length(year, np.clip(month, 1, 12))
    return _like(array, in_year & (day >= 1) & (day <= last))


def _is_clock(array: pa.Array, hour: Longs, minute: Longs, second: Longs) -> pa.Array:
    return _like(array, (hour <= 23) & (minute <= 59) & (second <= 59))


def _month_length(year: Longs, month: Longs) -> Longs:
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])[month - 1]
    found: Longs = lengths + (is_leap & (month == 2))
    return found


def _days(year: Longs, month: Longs, day: Longs) -> Longs:
    """Return days since 1970 in the proleptic Gregorian calendar."""
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    found: Longs = months.astype("datetime64[D]").astype(np.int64) + day - 1
    return found
