# SPDX-License-Identifier: Apache-2.0
"""Prints durations in the form that options accept."""

from __future__ import annotations

__all__ = ["duration"]

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def duration(millis: int) -> str:
    """Return milliseconds in their largest unit, rounded down: ``5 s``, ``3 h``."""
    for length, unit in _UNITS:
        if millis >= length:
            return f"{millis // length} {unit}"
    return "0 ms"
