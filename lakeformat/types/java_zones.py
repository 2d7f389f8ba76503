# SPDX-License-Identifier: Apache-2.0
"""Finds the UTC offsets of time zones at many instants, as a JVM computes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import TYPE_CHECKING, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["ZoneOffsets", "find_zone", "zone_offsets"]

Nanos: TypeAlias = "npt.NDArray[np.int64]"

_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_UTC = frozenset({"UTC", "GMT", "Z"})
_SHORT_NAMES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Java's three-letter names, which the time zone database does not have."""

_NANOS_PER_SECOND = 1_000_000_000
_FIRST_SECOND = int(datetime(1900, 1, 1, tzinfo=UTC).timestamp())
"""1900-01-01T00:00:00Z in seconds since 1970. For earlier times a JVM uses the standard offset that
the zone has now.
"""
_LAST_SECOND = (2**63 - 1) // _NANOS_PER_SECOND
"""The last second that 64 bits of nanoseconds can hold."""
_STEP_SECONDS = 2 * 86_400
"""Two days: within this time no zone changes its offset and changes it back."""
_STANDARD_YEAR = 2030


@dataclass(frozen=True, slots=True)
class ZoneOffsets:
    """The UTC offsets of a time zone, and the instant from which each offset applies; both in
    nanoseconds.
    """

    starts: Nanos
    offsets: Nanos

    @property
    def is_utc(self) -> bool:
        """True if clocks of the zone always show UTC."""
        return not self.offsets.any()

    def at(self, instants: Nanos) -> Nanos:
        """Return the offset from UTC at each instant, in nanoseconds."""
        return self.offsets[self.starts.searchsorted(instants, side="right") - 1]


def find_zone(name: str) -> tzinfo:
    """Return the zone that Java means by a name; raise ``ValueError`` if this machine has no such
    zone.
    """
    name = name.strip()
    if name.upper() in _UTC:
        return UTC
    try:
        if found := _OFFSET.fullmatch(name):
            offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
            return timezone(-offset if found[1] == "-" else offset)
        return ZoneInfo(_SHORT_NAMES.get(name, name))
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(
            "there is no such time zone: write a name such as Europe/Berlin. If the name is right, "
            "this machine lacks the time zone database: install tzdata"
        ) from None


@cache
def zone_offsets(name: str) -> ZoneOffsets:
    """Return all offsets of a zone as a JVM computes them.

    Raise ``ValueError`` if this machine has no such zone.
    """
    import numpy as np  # not needed to import a DAG file that names a zone

    zone = find_zone(name)
    pairs = [(-(2**63) // _NANOS_PER_SECOND, _standard_seconds(zone))]
    if isinstance(zone, ZoneInfo):
        pairs.extend(_changes(zone))
    seconds = np.array(pairs, np.int64)
    starts = seconds[:, 0] * _NANOS_PER_SECOND
    starts[0] = -(2**63)
    return ZoneOffsets(starts, seconds[:, 1] * _NANOS_PER_SECOND)


def _changes(zone: tzinfo) -> Iterator[tuple[int, int]]:
    """Yield each change of the zone's offset: its time in seconds since 1970, and the new offset.

    The offset is in seconds. The first pair has the offset at the beginning of 1900.
    """
    known = _seconds_at(zone, _FIRST_SECOND)
    yield _FIRST_SECOND, known
    for end in range(_FIRST_SECOND + _STEP_SECONDS, _LAST_SECOND, _STEP_SECONDS):
        found = _seconds_at(zone, end)
        if found != known:
            yield _first_with(zone, found, end - _STEP_SECONDS, end), found
            known = found


def _first_with(zone: tzinfo, offset: int, before: int, after: int) -> int:
    """Return the first second from which the zone has ``offset``.

    The zone has a different offset at second ``before``, and ``offset`` at second ``after``.
    """
    while after - before > 1:
        middle = (before + after) // 2
        if _seconds_at(zone, middle) == offset:
            after = middle
        else:
            before = middle
    return after


def _seconds_at(zone: tzinfo, second: int) -> int:
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _standard_seconds(zone: tzinfo) -> int:
    start = int(datetime(_STANDARD_YEAR, 1, 1, tzinfo=UTC).timestamp())
    return min(_seconds_at(zone, start + day * 86_400) for day in range(365))
