# SPDX-License-Identifier: Apache-2.0
"""The ages of a table's snapshots as text."""

from __future__ import annotations

from typing import Protocol

__all__ = ["ages"]

_MINUTE, _HOUR, _DAY = 60, 60 * 60, 24 * 60 * 60


class _Snapshots(Protocol):
    @property
    def count(self) -> int: ...
    @property
    def oldest_age_seconds(self) -> float | None: ...
    @property
    def newest_age_seconds(self) -> float | None: ...


def ages(snapshots: _Snapshots) -> str:
    """Return ``newest 3 hours old, oldest 2 days old``; one age for one snapshot."""
    found = f"newest {_age(snapshots.newest_age_seconds)}"
    if snapshots.count > 1:
        found += f", oldest {_age(snapshots.oldest_age_seconds)}"
    return found


def _age(seconds: float | None) -> str:
    """Return ``3 hours old``; a negative age, from clocks that differ, counts as zero."""
    left = max(seconds or 0, 0)
    for length, unit in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if left >= length:
            count = int(left // length)
            return f"{count} {unit}{'' if count == 1 else 's'} old"
    return "less than a minute old"
