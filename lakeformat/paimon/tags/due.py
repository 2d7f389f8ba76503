# SPDX-License-Identifier: Apache-2.0
"""Finds the automatic tags that are due, from commit times or watermarks alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakeformat.paimon.tags.period import Period

__all__ = ["DueTag", "Timed", "Timeline", "surplus"]


@dataclass(frozen=True, slots=True)
class Timed:
    """A snapshot, and its commit time or watermark."""

    snapshot_id: int
    moment: datetime | None
    """The time in local time; None for a snapshot without a watermark."""


@dataclass(frozen=True, slots=True)
class DueTag:
    """An automatic tag to create: its name, and the id of its snapshot."""

    name: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Finds the automatic tags that are due, given the options and the period of the last tag."""

    period: Period
    delay: timedelta
    completes: bool
    """True if periods in which no snapshot was committed get a tag, too."""
    next_start: datetime | None = None
    """The local time at which the next period starts; None before the first tag."""

    def due(self, snapshots: Iterable[Timed], taken: Iterable[str] = ()) -> list[DueTag]:
        """Return the tags to create for ``snapshots``, which are ascending.

        The time of a tag's snapshot is at or after the end of the tag's period. ``taken`` are names
        of existing tags.
        """
        found, names, upcoming = [], set(taken), self.next_start
        for each in snapshots:
            if each.moment is None or not self._is_over(each.moment, upcoming):
                continue
            start = upcoming
            if start is None or not self.completes:
                start = self.period.floor(each.moment) - self.period.length
            upcoming = start + self.period.length
            name = self.period.name(start)
            if name not in names:
                names.add(name)
                found.append(DueTag(name, each.snapshot_id))
        return found

    def _is_over(self, moment: datetime, upcoming: datetime | None) -> bool:
        return upcoming is None or moment - self.delay >= upcoming + self.period.length


def surplus(oldest_first: Sequence[str], most: int | None) -> list[str]:
    """Return all names except the last ``most`` names; an empty list if ``most`` is None."""
    return [] if most is None else list(oldest_first[: max(0, len(oldest_first) - most)])
