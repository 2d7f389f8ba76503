# SPDX-License-Identifier: Apache-2.0
"""Checks and converts the value of an argument by the argument's type."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin

from spark_jobs.job_requests.request import alternatives, is_moment, plain_value

__all__ = ["fits", "readings"]

_AGE = re.compile(r"\d+\s*[A-Za-zµ]+")
# Up to the year 2286: a number with more digits is in microseconds, or a date and time.
_MILLIS = re.compile(r"\d{11,13}")


def fits(hint: Any, value: Any) -> bool:
    """Return True if a value has the type ``hint``.

    If ``hint`` is the type of a time, text fits only if it is an ISO date or time, or an age, such
    as ``"2 d"``. An age does not fit a type that includes ``datetime``, because an argument of such
    a type is a point in time.
    """
    if not _accepts(hint, value):
        return False
    if not (is_moment(hint) and isinstance(value, str)):
        return True
    if _AGE.fullmatch(value.strip()):
        return datetime not in alternatives(hint)
    with suppress(ValueError):
        return bool(datetime.fromisoformat(value.strip()))
    return False


def _accepts(hint: Any, value: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_accepts(part, value) for part in get_args(hint))
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin is Callable:
        return callable(value)
    if origin is Mapping:
        inner = get_args(hint)[1]
        return isinstance(value, dict) and all(
            isinstance(key, str) and _accepts(inner, each) for key, each in value.items()
        )
    if origin is Sequence:
        inner = get_args(hint)[0]
        return isinstance(value, list | tuple) and all(_accepts(inner, each) for each in value)
    if hint is str:
        return isinstance(value, str) and bool(value.strip())
    if hint is float:
        return type(value) in (int, float)
    if hint is datetime:
        return isinstance(value, datetime)
    return type(value) is hint or hint is Any  # compares exactly, because True is an int


def readings(hint: Any, value: Any) -> Sequence[Any]:
    """Return the values that a rendered value may mean, such as ``"5"`` and 5 for ``"5"``.

    These are the value itself and, for text, its conversions to the types of ``hint``. But if
    ``hint`` is the type of a time, text has only one meaning: 11 to 13 digits mean a number of
    epoch milliseconds, and any other text means itself.
    """
    value = plain_value(hint, value)
    if not isinstance(value, str):
        return (value,)
    wanted = alternatives(hint)
    if is_moment(hint):  # "7" is not converted, so that the library refuses it and asks for a unit
        return (int(value) if _MILLIS.fullmatch(value.strip()) else value,)
    readings: list[Any] = [value]
    if bool in wanted and value.strip().lower() in ("true", "false"):
        readings.append(value.strip().lower() == "true")
    if any(each in (int, float) or get_origin(each) in (Mapping, Sequence) for each in wanted):
        with suppress(ValueError):
            readings.append(json.loads(value))
    return readings
