# SPDX-License-Identifier: Apache-2.0
"""The chart of a table: a bar for each of its newest snapshots; the height is the number of
records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakeformat import Snapshot

__all__ = ["HEIGHT", "SLOT", "Bar", "bars"]

HEIGHT = 48
"""The height of the highest bar, in SVG units."""
SLOT = 10
"""The width of a bar with the gap after it, in SVG units."""
_GAP = 2
_LEAST_BARS = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar for a snapshot; ``x`` and ``y`` are its upper left corner, in SVG units."""

    snapshot: Snapshot
    x: int
    y: float
    width: int
    height: float


def bars(newest_first: Sequence[Snapshot]) -> list[Bar]:
    """Return the bars, oldest first; empty for fewer than three snapshots, or if no snapshot has
    records.
    """
    most = max((each.total_record_count for each in newest_first), default=0)
    if len(newest_first) < _LEAST_BARS or most <= 0:
        return []
    found = []
    for number, snapshot in enumerate(reversed(newest_first)):
        height = round(max(snapshot.total_record_count, 0) / most * HEIGHT, 2)
        height = max(height, 1)  # an empty table is a line
        found.append(Bar(snapshot, number * SLOT, HEIGHT - height, SLOT - _GAP, height))
    return found
