# SPDX-License-Identifier: Apache-2.0
"""Parses sizes and durations, with the units that options accept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from typing import TypeAlias

__all__ = ["Setting", "parse_asked_duration", "parse_duration", "parse_size", "setting_text"]

Setting: TypeAlias = str | int | float | bool | timedelta
"""A value that a caller may give for an option; ``setting_text`` converts it to the stored text."""

_MOST = 2**63 - 1
"""The largest number of bytes or milliseconds that an option accepts: other engines use 64 bits."""
_AMOUNT = re.compile(r"([0-9]+)\s*([a-zµ]*)")
_CAPITAL_M = re.compile(r"[0-9]+\s*M")
_SIZE_UNITS: dict[str, int | Fraction] = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_DURATION_UNITS: dict[str, int | Fraction] = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), Fraction(1, 10**3)),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), Fraction(1, 10**6)),
}
_ASKED_UNITS = {**_DURATION_UNITS, **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400_000)}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``128 mb``.

    A number without a unit is bytes. Raise ``ValueError`` for any other text.
    """
    return _parse(text, _SIZE_UNITS)


def parse_duration(text: str) -> int:
    """Return the milliseconds of a duration such as ``10 s``.

    As in Java, a number without a unit is milliseconds. Raise ``ValueError`` for any other text.
    """
    return _parse(text, _DURATION_UNITS)


def parse_asked_duration(text: str) -> int:
    """Return the milliseconds of a duration in a call or a command, such as ``7 d`` or ``2 w``.

    Raise ``ValueError`` for a number without a unit, for ``1 M``, which can mean a month, and for
    text that is not a duration.
    """
    # A user who types 7 does not mean milliseconds.
    if text.strip().isdecimal():
        raise ValueError(f"a number needs a unit, as in '{text.strip()} d'")
    if _CAPITAL_M.fullmatch(text.strip()):
        raise ValueError(
            "the unit M can mean minutes or months: write minutes with the unit m, and months as "
            "days, such as 30 d"
        )
    return _parse(text, _ASKED_UNITS)


def setting_text(what: str, value: object) -> str:
    """Return the text of an option that was given as text, number, bool or timedelta.

    A timedelta is rounded down to milliseconds. Raise ``InvalidRequestError`` for any other value;
    ``what`` names the option in the message.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, timedelta):
        millis = value // timedelta(milliseconds=1)
        unit, amount = next(
            (unit, millis // each)
            for unit, each in (("d", 86_400_000), ("s", 1_000), ("ms", 1))
            if millis % each == 0
        )
        return f"{amount} {unit}"
    from lakeformat.types.type_rules import require_text  # a DAG is parsed without it

    require_text(what, value)
    return str(value)


def _parse(text: str, units: Mapping[str, int | Fraction]) -> int:
    found = _AMOUNT.fullmatch(text.strip().lower())
    if found is None or found[2] not in units:
        raise ValueError(f"write a whole number and one of the units {', '.join(_shortest(units))}")
    value = int(int(found[1]) * units[found[2]])
    if value > _MOST:
        raise ValueError("it is larger than 64 bits")
    return value


def _shortest(units: Mapping[str, int | Fraction]) -> list[str]:
    """Return the shortest name of each unit, the smallest unit first."""
    names: dict[int | Fraction, str] = {}
    for name in sorted(filter(None, units), key=lambda name: (len(name), name)):
        names.setdefault(units[name], name)
    return [names[size] for size in sorted(names)]
