# SPDX-License-Identifier: Apache-2.0
"""Derives the verdict of a table, and limits the score to the range of that verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["Reason", "Verdict", "in_order", "judge"]


class Verdict(StrEnum):
    """The verdict on a table, in one word."""

    EMPTY = "empty"
    """The table has no commit yet."""
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """The table works, but costs more than it should."""
    UNHEALTHY = "unhealthy"
    """Reads or writes are slow or fail."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A problem of the table, with the advice that solves it."""

    finding: str
    advice: str
    is_severe: bool = False

    def __str__(self) -> str:
        return f"{self.finding}: {self.advice}"


_LOW_POINTS = 50
_LIMITS: Final = {
    Verdict.UNHEALTHY: (0, _LOW_POINTS - 1),
    Verdict.DEGRADED: (_LOW_POINTS, 89),
    Verdict.HEALTHY: (90, 100),
    Verdict.EMPTY: (100, 100),
}
"""The lowest and the highest score that each verdict allows."""


def in_order(*reasons: Reason) -> tuple[Reason, ...]:
    """Return the reasons, severe ones first."""
    return tuple(sorted(reasons, key=lambda reason: not reason.is_severe))


def judge(reasons: Sequence[Reason], points: int, *, is_empty: bool) -> tuple[Verdict, int]:
    """Return the verdict and the score: ``points``, limited to the scores that the verdict
    allows.

    ``is_empty`` is True for a table without a snapshot.
    """
    verdict = _verdict(reasons, points, is_empty=is_empty)
    least, most = _LIMITS[verdict]
    return verdict, min(max(points, least), most)


def _verdict(reasons: Sequence[Reason], points: int, *, is_empty: bool) -> Verdict:
    if any(reason.is_severe for reason in reasons) or (reasons and points < _LOW_POINTS):
        return Verdict.UNHEALTHY
    if reasons:
        return Verdict.DEGRADED
    return Verdict.EMPTY if is_empty else Verdict.HEALTHY
