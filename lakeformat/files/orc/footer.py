# SPDX-License-Identifier: Apache-2.0
"""Finds ORC files with timestamps that Arrow would read wrongly, by the bounds in their footers.

Arrow reads timestamps as 64-bit nanoseconds, from 1677 to 2262, and does not notice other values.
It would read 9999-12-31, a usual mark for "still valid", as a day in 1816. Arrow returns no
statistics of ORC files, so this module reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.files.orc.message import numbers, parse_message, parts
from lakeformat.files.orc.tail import OrcTail

__all__ = ["find_far_timestamps", "timestamp_millis"]

LARGEST_MILLIS = (2**63 - 1) // 1_000_000
_TIMESTAMP_KINDS = (9, 18)
_TIMESTAMP_STATISTICS = 9
_UTC_ENDS = (3, 4)
_MILLIS = (1, 2, *_UTC_ENDS)
"""The numbers of the members with the bounds of timestamps, in milliseconds: the minimum and the
maximum as local times, then both in UTC.
"""


def find_far_timestamps(tail: OrcTail, columns: Sequence[str]) -> str | None:
    """Return the first of ``columns`` with a timestamp outside of 1677 to 2262.

    Return None if the footer shows no such timestamp.
    """
    for column in columns:
        for number in tail.subtree(column):
            is_timestamp = tail.types[number].kind in _TIMESTAMP_KINDS
            if is_timestamp and number < len(tail.statistics) and _is_far(tail.statistics[number]):
                return column
    return None


def timestamp_millis(tail: OrcTail, number: int) -> tuple[int, int] | None:
    """Return the least and the greatest timestamp of the type ``number``, in milliseconds of UTC.

    Return None if the footer does not have both bounds.
    """
    if number >= len(tail.statistics):
        return None
    for found in parts(parse_message(tail.statistics[number]), _TIMESTAMP_STATISTICS):
        members = parse_message(found)
        ends = [end for member in _UTC_ENDS for end in numbers(members, member)]
        if len(ends) == len(_UTC_ENDS):
            least, greatest = map(_unzigzag, ends)
            return least, greatest
    return None


def _unzigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _is_far(statistics: bytes) -> bool:
    for found in parts(parse_message(statistics), _TIMESTAMP_STATISTICS):
        members = parse_message(found)
        ends = [end for member in _MILLIS for end in numbers(members, member)]
        if any(abs(_unzigzag(end)) >= LARGEST_MILLIS for end in ends):
            return True
    return False
