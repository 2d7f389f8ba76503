# SPDX-License-Identifier: Apache-2.0
"""The verdict on a table and its score: one rule makes both, so they cannot contradict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lakeformat.paimon.health.health_report import Reason, Verdict

__all__ = ["judge"]

_LOW_POINTS = 50
_LIMITS: Final = {
    Verdict.UNHEALTHY: (0, _LOW_POINTS - 1),
    Verdict.DEGRADED: (_LOW_POINTS, 89),
    Verdict.HEALTHY: (90, 100),
    Verdict.EMPTY: (100, 100),
}
"""The lowest and the highest score of each verdict."""


def judge(reasons: Sequence[Reason], points: int, *, is_empty: bool) -> tuple[Verdict, int]:
    """Return the verdict that follows from the reasons, and the score.

    The score is the points of the parts, limited to the scores of the verdict.
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
