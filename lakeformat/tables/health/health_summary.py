# SPDX-License-Identifier: Apache-2.0
"""The members that a health report has for tables of every format."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.tables.health.score import Score
from lakeformat.tables.health.verdict import Reason, Verdict
from lakeformat.tables.report import Report

__all__ = ["HealthSummary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSummary(Report):
    """The verdict, the score and the reasons for the newest snapshot of a table."""

    table: str
    location: str
    snapshot_id: int | None
    verdict: Verdict
    reasons: tuple[Reason, ...]
    """The problems, severe ones first; empty if the table is healthy."""
    score: int
    """A number from 0 to 100: the sum of the parts, limited to the scores that the verdict
    allows.
    """
    score_parts: Score
    score_notes: tuple[str, ...]
    """The parts of the score that are not measured for this kind of table."""

    @property
    def why_they_differ(self) -> str | None:
        """The reason why ``score`` is not the sum of its parts; None if it is their sum."""
        if self.score == self.score_parts.total:
            return None
        if self.reasons:
            return (
                f"the verdict {self.verdict} limits the score to {self.score}; the parts of the "
                f"score add up to {self.score_parts.total}"
            )
        return (
            f"a table without a reason to act has a score of at least {self.score}; the parts of "
            f"the score add up to {self.score_parts.total}"
        )

    @property
    def first_step(self) -> str | None:
        """The first advice that is a ``lake`` command; None if no reason has such advice."""
        return next((each.advice for each in self.reasons if each.advice.startswith("lake ")), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
        more = {"verdict": str(self.verdict), "why_they_differ": self.why_they_differ}
        return {**asdict(self), **more}
