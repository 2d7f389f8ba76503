# SPDX-License-Identifier: Apache-2.0
"""Reads texts of times with all their fractional digits; Python's times keep only six."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["TimestampText", "plain_moment"]

_MOMENT = re.compile(
    r"(\d{4}-?\d\d-?\d\d)(?:[ T](\d\d(?::?\d\d(?::?\d\d(?:[.,](\d*))?)?)?))?"
    r"\s*(Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
"""A day, a time of day, the fraction of its seconds, and a zone; only the day is required."""


@dataclass(frozen=True, slots=True, repr=False)
class TimestampText:
    """The value of ``TIMESTAMP '…'`` in SQL; ``text`` has the form that ``plain_moment`` returns.

    Only columns of the types TIMESTAMP and TIMESTAMP_LTZ accept such a value.
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"TIMESTAMP '{self.text}'"


def plain_moment(text: str) -> str:
    """Return the text of a time in the form ``2024-01-31 10:30:00.5``.

    If ``text`` has a zone, the result is in UTC and ends with Z. Without a time of day, ``text``
    means the beginning of the day in its zone. Raise ValueError if ``text`` is not the text of a
    time, and OverflowError if the time in UTC has no year from 1 to 9999.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    day, clock, fraction, zone = found.groups("")
    moment = datetime.fromisoformat(f"{day}T{re.split('[.,]', clock)[0] or '00'}")
    if zone:
        moment = datetime.fromisoformat(f"{moment.isoformat()}{zone}").astimezone(UTC)
    # Unlike strftime, it prints four digits for a year before 1000.
    shown = moment.replace(tzinfo=None).isoformat(" ", "seconds")
    digits = fraction.rstrip("0")
    return f"{shown}{'.' if digits else ''}{digits}{'Z' if zone else ''}"
