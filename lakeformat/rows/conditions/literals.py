# SPDX-License-Identifier: Apache-2.0
"""Converts values in conditions, and new values of an UPDATE, exactly to the type of their column.

A value that cannot be converted raises InvalidRequestError, which names the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.rows.conditions.moments import TimestampText, plain_moment
from lakeformat.types.arrow_types import to_arrow_type
from lakeformat.types.casts import cast_array
from lakeformat.types.count_text import counted
from lakeformat.types.type_kinds import COMPACT_DECIMAL_PRECISION
from lakeformat.types.type_text import type_to_json
from lakeformat.types.types import STRING, AtomicType, DataField, DataType, TypeName
from lakeformat.types.values import values_to_arrow

__all__ = ["OR_A_RANGE", "has_literals", "literal_of", "literal_text", "neighbours"]

T = TypeName
_INTEGERS = {T.TINYINT: 8, T.SMALLINT: 16, T.INT: 32, T.BIGINT: 64}
_DATE = re.compile(r"\s*\d{4,}-\d{1,2}-\d{1,2}\s*")
_TIME = re.compile(r"\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?\s*")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)", re.ASCII)
_FRACTION = re.compile(r"\.(\d*?)0*\s*$")
_MINUTE = re.compile(r"(\d{4}-\d{1,2}-\d{1,2}[ T]\d{1,2}:\d{1,2})(Z|[+-]\d{2}:?\d{2})?")
_BYTES = re.compile(r"\s*[xX]'((?:[0-9a-fA-F]{2})*)'\s*")
_ZONE = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})$")
_AS_TIMESTAMP = "write it as '2024-01-31', '2024-01-31 10:30' or '2024-01-31 10:30:00'"
_WITHOUT_ZONE = "it has a time zone and the column has none; write the time without a zone"
_WIDE = Context(prec=400)
"""A decimal context with enough digits for any DOUBLE rounded to the scale of a column."""
_TRUTH = {"true": True, "false": False}
OR_A_RANGE = ". A condition can also use a range around the value"
"""The end of a message about a value in a condition. Messages about a partition leave it out,
because the value of a partition cannot be a range.
"""


def has_literals(data_type: DataType) -> bool:
    """Return True if ``literal_of`` accepts columns of the type."""
    return isinstance(data_type, AtomicType) and data_type.name in _CONVERT


def literal_of(value: Any, field: DataField) -> pa.Scalar:
    """Return the value as a scalar of the column's type; a null scalar for None.

    Raise InvalidRequestError if ``has_literals`` is False for the type, if the value cannot be
    converted exactly, or if it has a time zone and the column has none. Text is read as SQL reads
    it. In a column of TIMESTAMP_LTZ, a time without a zone is in UTC.
    """
    data_type = field.type
    convert = _CONVERT.get(data_type.name) if isinstance(data_type, AtomicType) else None
    if convert is None or not isinstance(data_type, AtomicType):
        raise InvalidRequestError(
            f"column {field.name!r} is {_type_name(field)}, which cannot be compared with a value: "
            "use IS NULL or IS NOT NULL only"
        )
    arrow_type = to_arrow_type(data_type)
    if value is None:
        return pa.scalar(None, arrow_type)
    if isinstance(value, pa.Scalar) and value.type == arrow_type:
        return value
    value = _plain_value(value)
    if value is None:
        return pa.scalar(None, arrow_type)
    try:
        found = convert(value, data_type)
        return found if isinstance(found, pa.Scalar) else pa.scalar(found, arrow_type)
    except (LakeError, pa.ArrowException, ArithmeticError, TypeError, ValueError) as reason:
        detail = str(reason) if isinstance(reason, _Unfit | LakeError) else "it does not fit"
        shown = value if isinstance(value, Decimal) else repr(value)  # as it was typed
        raise InvalidRequestError(
            f"{shown} is not a value of column {field.name!r}, "
            f"which is {_type_name(field)}: {detail}"
        ) from None


def literal_text(value: Any) -> str:
    """Return a value as SQL text."""
    if isinstance(value, pa.Scalar):
        value = _python_value(value)
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case bytes() | bytearray():
            return f"X'{value.hex().upper()}'"
        case float() if not np.isfinite(value):
            return {"nan": "'NaN'", "inf": "'Infinity'", "-inf": "'-Infinity'"}[str(value)]
        case int() | float() | Decimal():
            return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def neighbours(value: Any, field: DataField) -> tuple[pa.Scalar | None, pa.Scalar | None] | None:
    """Return the nearest storable values below and above a number that the column cannot store.

    The first or the second is None if the column has no value on that side. The whole result is
    None if ``value`` is not a number, or if the column's type is not an integer or decimal.
    """
    data_type, value = field.type, _plain_value(value)
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not is_number or not isinstance(data_type, AtomicType):
        return None
    if data_type.name in _INTEGERS:
        step, most = Decimal(1), Decimal((1 << _INTEGERS[data_type.name] - 1) - 1)
        least = -most - 1
    elif data_type.name is T.DECIMAL:
        step = Decimal(1).scaleb(-data_type.scale, _WIDE)
        most = _largest_decimal(data_type)
        least = most.copy_negate()
    else:
        return None
    exact = _exact(value)
    if exact.is_nan() or exact > most:  # NaN is larger than every number
        return _number(most, data_type), None
    if exact < least:
        return None, _number(least, data_type)
    below = exact.quantize(step, ROUND_FLOOR, _WIDE)
    return _number(below, data_type), _number(min(_WIDE.add(below, step), most), data_type)


def _number(value: Decimal, data_type: AtomicType) -> pa.Scalar:
    plain = value if data_type.name is T.DECIMAL else int(value)
    return values_to_arrow([plain], data_type)[0]


def _largest_decimal(data_type: AtomicType) -> Decimal:
    """Return the largest value that a decimal column may contain.

    A decimal with a precision of at most 18 is stored as a 64-bit integer. The sum of two such
    decimals may have more digits than the precision, so the limit is the largest 64-bit integer.
    """
    is_compact = data_type.precision <= COMPACT_DECIMAL_PRECISION
    unscaled = (1 << 63) - 1 if is_compact else 10**data_type.precision - 1
    return Decimal(unscaled).scaleb(-data_type.scale, _WIDE)


class _Unfit(ValueError):
    """Raised if a value does not fit its column; the text advises on a value that fits."""


def _python_value(scalar: pa.Scalar) -> Any:
    """Return an Arrow scalar as a Python value.

    Times become str, because Python's times end at microseconds.
    """
    if pa.types.is_temporal(scalar.type) and scalar.is_valid:
        text = str(scalar.cast(pa.string()))
        return text.removesuffix("Z")
    return scalar.as_py()


def _plain_value(value: Any) -> Any:
    """Return a numpy or Arrow scalar as a Python value, and any other value unchanged.

    Arrow's times become str, with all their digits.
    """
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, pa.Scalar):
        return value
    if pa.types.is_temporal(value.type) and value.is_valid:
        return str(value.cast(pa.string()))
    return value.as_py()


def _boolean(value: Any, _: AtomicType) -> bool:
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    if not isinstance(value, bool):
        raise _Unfit("write true or false")
    return value


def _exact(value: Any) -> Decimal:
    """Return a number, or the text of a number, as a Decimal with the same digits.

    Raise ``_Unfit`` for any other value.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise _Unfit("write a number")
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise _Unfit("write a number")  # Python would accept them
    try:
        return Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise _Unfit("write a number") from None


def _integer(value: Any, data_type: AtomicType) -> int:
    exact = _exact(value)
    if not exact.is_finite() or exact != exact.to_integral_value():
        raise _Unfit("write a whole number")
    bits = _INTEGERS[data_type.name]
    if not -(1 << bits - 1) <= exact < 1 << bits - 1:
        raise _Unfit(f"write a number from -2^{bits - 1} to 2^{bits - 1}-1")
    return int(exact)


def _decimal(value: Any, data_type: AtomicType) -> pa.Scalar:
    exact = _exact(value)
    if not exact.is_finite():
        raise _Unfit("write a finite number")
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    scale = 0 if not text else -(exponent + len(digits) - len(text))
    if scale > data_type.scale:
        raise _Unfit(f"write at most {counted(data_type.scale, 'digit')} after the point")
    if exact.copy_abs() > _largest_decimal(data_type):  # abs() would round to 28 digits
        before = data_type.precision - data_type.scale
        raise _Unfit(f"write at most {counted(before, 'digit')} before the point")
    kept = Decimal((sign, tuple(map(int, text)), -scale)) if text else Decimal(0)
    with_scale = kept.as_tuple()
    assert isinstance(with_scale.exponent, int)
    zeros = (0,) * (with_scale.exponent + data_type.scale)
    exact = Decimal((sign, with_scale.digits + zeros, -data_type.scale))
    return values_to_arrow([exact], data_type)[0]


def _floating(value: Any, data_type: AtomicType) -> float:
    exact = _exact(value)
    if not exact.is_finite():
        return float(exact)
    narrow = np.float32 if data_type.name is T.FLOAT else np.float64
    with np.errstate(over="ignore"):
        found = narrow(float(exact))
    names = (Decimal(float(found)), Decimal(str(found)), Decimal(repr(float(found))))
    if np.isfinite(found) and exact in names:
        return float(found)  # Either exact, or the shortest text of that number in numpy or Python.
    raise _Unfit(f"the nearest value is {found}; give that value{OR_A_RANGE}")


def _text(value: Any, _: AtomicType) -> str:
    if not isinstance(value, str):
        raise _Unfit("write a text in quotes")
    value.encode()
    return value


def _bytes(value: Any, _: AtomicType) -> bytes:
    if isinstance(value, str) and (found := _BYTES.fullmatch(value)):
        return bytes.fromhex(found[1])
    if not isinstance(value, bytes | bytearray):
        raise _Unfit("write bytes, in SQL as X'0AFF'")
    return bytes(value)


def _date(value: Any, data_type: AtomicType) -> Any:
    if isinstance(value, str):
        if not _DATE.fullmatch(value):
            raise _Unfit("write it as '2024-01-31'")
        return _cast(value, data_type)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _Unfit("write a date, as '2024-01-31'")
    return value


def _time(value: Any, data_type: AtomicType) -> Any:
    if isinstance(value, time) and value.tzinfo is None:
        value = value.isoformat()
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise _Unfit("write it as '10:30:00', without a zone")
    _require_digits(value, 6 if data_type.name is T.TIME_MICROS else 3)
    micros = _micros_of_day(value)
    return micros if data_type.name is T.TIME_MICROS else _cast(value, data_type)


def _micros_of_day(text: str) -> int:
    hours, minutes, seconds = [*text.strip().split(":"), "0"][:3]
    try:
        exact = time(int(hours), int(minutes), int(seconds.partition(".")[0]))
    except ValueError:
        raise _Unfit("write a time from '00:00:00' to '23:59:59'") from None
    fraction = seconds.partition(".")[2][:6].ljust(6, "0")
    whole = (exact.hour * 60 + exact.minute) * 60 + exact.second
    return whole * 1_000_000 + int(fraction)


def _timestamp(value: Any, data_type: AtomicType) -> Any:
    is_instant = data_type.name is T.TIMESTAMP_LTZ
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a date has no zone
    if isinstance(value, datetime):
        value = _moment_text(value, is_instant=is_instant)
    elif isinstance(value, TimestampText):
        value = value.text
    if not isinstance(value, str):
        raise _Unfit(_AS_TIMESTAMP)
    text = value.strip()
    minute = _MINUTE.fullmatch(text)
    if minute is not None:  # ISO 8601 allows a time without seconds
        text = f"{minute[1]}:00{minute[2] or ''}"
    if is_instant:
        text = _to_utc(text)
    elif _ZONE.search(text):
        raise _Unfit(_WITHOUT_ZONE)
    _require_digits(text, data_type.precision)
    _require_day(text)
    try:
        return _cast(text, data_type)
    except InvalidRequestError as reason:
        raise _Unfit(f"{reason}; {_AS_TIMESTAMP}") from None


def _moment_text(moment: datetime, *, is_instant: bool) -> str:
    if moment.tzinfo is not None:
        if not is_instant:
            raise _Unfit(_WITHOUT_ZONE)
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    nanos = getattr(moment, "nanosecond", 0)  # only pandas has such times
    text = datetime(*moment.timetuple()[:6], moment.microsecond).isoformat(" ", "microseconds")  # noqa: DTZ001
    return f"{text}{nanos:03d}"


def _to_utc(text: str) -> str:
    """Return the text of a time with a zone as text in UTC, with all its digits.

    A text without a zone is returned unchanged.
    """
    if not _ZONE.search(text):
        return text
    try:
        return plain_moment(text).removesuffix("Z")
    except ValueError:
        raise _Unfit(f"{_AS_TIMESTAMP}, then the zone, as in '2024-01-31 10:30+02:00'") from None


def _require_day(text: str) -> None:
    """Raise ``_Unfit`` unless the text begins with a day that exists, such as ``2024-01-31``.

    A cast would read ``20240131`` as a number, and ``2024-02-31`` as the last day of February.
    """
    day = _DAY.match(text)
    if day is None:
        raise _Unfit(_AS_TIMESTAMP)
    try:
        date(*map(int, day.groups()))
    except ValueError:
        raise _Unfit(f"the calendar has no such day; {_AS_TIMESTAMP}") from None


def _require_digits(text: str, digits: int) -> None:
    fraction = _FRACTION.search(text)
    if fraction is not None and len(fraction[1]) > digits:
        kept = counted(digits, "fractional digit")
        raise _Unfit(f"the column keeps {kept} of a second: write no more digits")


def _cast(text: str, data_type: AtomicType) -> pa.Scalar:
    return cast_array(pa.array([text], pa.string()), STRING, data_type)[0]


def _type_name(field: DataField) -> str:
    found = type_to_json(field.type)
    return found if isinstance(found, str) else str(found["type"])


_CONVERT: dict[TypeName, Callable[[Any, AtomicType], Any]] = {
    T.BOOLEAN: _boolean,
    **dict.fromkeys(_INTEGERS, _integer),
    T.DECIMAL: _decimal,
    T.FLOAT: _floating,
    T.DOUBLE: _floating,
    T.CHAR: _text,
    T.VARCHAR: _text,
    T.BINARY: _bytes,
    T.VARBINARY: _bytes,
    T.DATE: _date,
    T.TIME: _time,
    T.TIME_MICROS: _time,
    T.TIMESTAMP: _timestamp,
    T.TIMESTAMP_LTZ: _timestamp,
}
