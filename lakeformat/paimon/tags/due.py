"""Which automatic tags are due: decided from commit times or watermarks alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakeformat.paimon.tags.period import Period

__all__ = ["DueTag", "Timed", "Timeline", "surplus"]


@dataclass(frozen=True, slots=True)
class Timed:
    """A snapshot, and the local time that counts for it; None if it says none."""

    snapshot_id: int
    moment: datetime | None


@dataclass(frozen=True, slots=True)
class DueTag:
    """A tag to be made."""

    name: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """How far automatic tags have come."""

    period: Period
    delay: timedelta
    completes: bool
    """Whether periods without a commit get a tag, too."""
    next_start: datetime | None = None
    """Where the next period begins; None before the first tag."""

    def due(self, snapshots: Iterable[Timed], taken: Iterable[str] = ()) -> list[DueTag]:
        """The tags to be made for snapshots in the order of their numbers.

        A tag is made by the first commit after its period and the delay are over: then nothing
        more comes for that period. ``taken`` are names that exist.
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
    """The tags beyond the number that is kept: the oldest of them."""
    return [] if most is None else list(oldest_first[: max(0, len(oldest_first) - most)])
