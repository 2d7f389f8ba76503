# SPDX-License-Identifier: Apache-2.0
"""Formats numbers of health reports of Paimon and Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat.tables.health.numbers import HistoryNumbers, StorageNumbers

__all__ = ["ages", "held_bytes"]

_MINUTE, _HOUR, _DAY = 60, 60 * 60, 24 * 60 * 60


def ages(snapshots: HistoryNumbers) -> str:
    """Return the ages of the snapshots, such as ``newest 3 hours old, oldest 2 days old``."""
    found = f"newest {_age(snapshots.newest_age_seconds)}"
    if snapshots.count > 1:
        found += f", oldest {_age(snapshots.oldest_age_seconds)}"
    return found


def held_bytes(storage: StorageNumbers) -> str:
    """Return the stored bytes, such as ``2 GiB now, 5 GiB in 80 files only for time travel``."""
    found = f"{size(storage.live_bytes)} now"
    if storage.time_travel_bytes is not None:
        in_files = counted(storage.time_travel_files or 0, "file")
        found += f", {size(storage.time_travel_bytes)} in {in_files} only for time travel"
    return found


def _age(seconds: float | None) -> str:
    """Return an age such as ``3 hours old``.

    None counts as 0. A negative age, which comes from clocks that differ, counts as 0, too.
    """
    left = max(seconds or 0, 0)
    for length, unit in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if left >= length:
            count = int(left // length)
            return f"{count} {unit}{'' if count == 1 else 's'} old"
    return "less than a minute old"
