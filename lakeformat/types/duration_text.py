# SPDX-License-Identifier: Apache-2.0
"""Formats durations: in the form that options accept, and as Java's ``Duration`` prints them."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["duration", "exact_duration", "java_duration"]

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
_MICROS_PER_SECOND = 1_000_000
_SECONDS_PER_MINUTE = 60
_MINUTES_PER_HOUR = 60


def duration(millis: int) -> str:
    """Return milliseconds in their largest unit, rounded down: ``5 s``, ``3 h``."""
    for length, unit in _UNITS:
        if millis >= length:
            return f"{millis // length} {unit}"
    return "0 ms"


def exact_duration(millis: int) -> str:
    """Return milliseconds in the largest unit that gives a whole number: ``25 h``, ``90 min``."""
    for length, unit in _UNITS:
        if millis and millis % length == 0:
            return f"{millis // length} {unit}"
    return "0 ms"


def java_duration(duration: timedelta) -> str:
    """Return a duration as Java prints it: ``PT24H``, ``PT1M30.5S``."""
    micros = duration // timedelta(microseconds=1)
    sign = "-" if micros < 0 else ""
    seconds, micros = divmod(abs(micros), _MICROS_PER_SECOND)
    minutes, seconds = divmod(seconds, _SECONDS_PER_MINUTE)
    hours, minutes = divmod(minutes, _MINUTES_PER_HOUR)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    rest = f"{sign}{seconds}{fraction}S" if seconds or micros else ""
    parts = [f"{sign}{hours}H" if hours else "", f"{sign}{minutes}M" if minutes else "", rest]
    return "PT" + ("".join(parts) or "0S")
