# SPDX-License-Identifier: Apache-2.0
"""The report of ``table.check()``: a result for each check, with examples and advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["CheckReport", "CheckResult", "Outcome"]

Outcome: TypeAlias = Literal["passed", "warned", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check."""

    name: str
    """The name of the check, such as ``not_null(id)``."""
    columns: tuple[str, ...] = ()
    outcome: Outcome
    bad_rows: int = 0
    examples: tuple[str, ...] = ()
    """Up to three rows that fail the check, such as ``id=7, status='paied'``."""
    finding: str
    """The outcome of the check in one clause with numbers."""
    advice: str = ""
    """The next step; empty if the check passed."""

    def __str__(self) -> str:
        return f"{self.name}: {self.finding}" + (f": {self.advice}" if self.advice else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport(Report):
    """The results of all checks of one table."""

    table: str
    snapshot_id: int | None
    """The id of the checked snapshot; None if the table has no snapshot.

    If staged rows were checked, the check ``unique`` compared them with the rows of this snapshot.
    """
    staged: tuple[str, ...] = ()
    """The addresses of the checked staged results; empty if published rows were checked."""
    rows: int
    """The number of checked rows."""
    checks: tuple[CheckResult, ...]

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(each for each in self.checks if each.outcome == "failed")

    @property
    def warned(self) -> tuple[CheckResult, ...]:
        """The checks that found a problem and only warn."""
        return tuple(each for each in self.checks if each.outcome == "warned")

    @property
    def reason(self) -> str:
        """The outcome in one sentence, for the log."""
        of_rows = f"{counted(self.rows, 'staged row' if self.staged else 'row')}"
        all_checks = counted(len(self.checks), "check")
        if not self.failed and not self.warned:
            return f"{all_checks} of {of_rows} passed"
        counts = {"failed": len(self.failed), "warned": len(self.warned)}
        shown = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
        return f"{of_rows}: {all_checks}, {shown}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON; ``failed`` and ``warned`` are numbers."""
        members = {name: getattr(self, name) for name in ("table", "snapshot_id", "rows")}
        return {
            **members,
            "staged": list(self.staged),
            "failed": len(self.failed),
            "warned": len(self.warned),
            "checks": [_members(each) for each in self.checks],
            "reason": self.reason,
        }


def _members(result: CheckResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "columns": list(result.columns),
        "outcome": result.outcome,
        "bad_rows": result.bad_rows,
        "examples": list(result.examples),
        "finding": result.finding,
        "advice": result.advice,
    }
