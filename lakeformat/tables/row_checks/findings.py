# SPDX-License-Identifier: Apache-2.0
"""Makes the result of each check, with its finding and advice, from counts of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.tables.checks import Checks, age_millis
from lakeformat.tables.moment import moment_text
from lakeformat.tables.row_checks.check_report import CheckResult, Outcome
from lakeformat.tables.row_checks.single_rows import NewestTime, RowCondition
from lakeformat.types.count_text import counted
from lakeformat.types.duration_text import duration

__all__ = ["Findings"]

_CORRECT = "correct these rows in the source, and write them again"


@dataclass(frozen=True, slots=True)
class Findings:
    """Makes the results of the checks of one run."""

    checks: Checks
    rows: int
    now_millis: int

    def of_rows(self) -> CheckResult:
        """Return the result of the check ``rows``, which limits the number of rows."""
        least, most = self.checks.min_rows, self.checks.max_rows
        allowed = " and ".join(
            f"{word} {limit:,}"
            for word, limit in (("at least", least), ("at most", most))
            if limit is not None
        )
        is_good = (least is None or self.rows >= least) and (most is None or self.rows <= most)
        return self._result(
            "rows",
            is_good,
            f"{counted(self.rows, 'row')}, expected {allowed}",
            "look into the source for missing or additional rows, or change the limits",
        )

    def of_nulls(self, found: RowCondition, column: str) -> CheckResult:
        """Return the result of a check ``not_null``."""
        return self._of_condition(found, [column], f"{self._share(found.bad_rows)} a null")

    def of_other_values(self, found: RowCondition, column: str) -> CheckResult:
        """Return the result of a check ``accepted_values``."""
        accepted = ", ".join(map(repr, self.checks.accepted_values[column])) or "null"
        finding = f"{self._share(found.bad_rows)} a value other than {accepted}"
        return self._of_condition(found, [column], finding)

    def of_condition(self, found: RowCondition) -> CheckResult:
        """Return the result of a check ``condition``."""
        do = "does" if found.bad_rows == 1 else "do"
        finding = f"{self._of_all(found.bad_rows)} {do} not meet the condition"
        return self._of_condition(found, sorted(found.condition.columns), finding)

    def of_repeated(
        self, name: str, columns: Sequence[str], bad_rows: int, examples: Sequence[str]
    ) -> CheckResult:
        """Return the result of a check ``unique``."""
        return self._result(
            name,
            not bad_rows,
            f"{counted(bad_rows, 'row')} with values that another row has, too",
            "remove the repeated rows from the source, and write the rows of the source again",
            columns=columns,
            bad_rows=bad_rows,
            examples=examples,
        )

    def of_time(self, found: NewestTime) -> CheckResult:
        """Return the result of a check ``freshness``."""
        column, newest = found.column.name, found.newest_millis
        allowed = age_millis(column, self.checks.freshness[column])
        if newest is None:
            finding, is_fresh = "no row has a time", False
        else:
            age = max(self.now_millis - newest, 0)
            is_fresh = age <= allowed
            finding = f"the newest time is {moment_text(newest)}, {duration(age)} ago"
        return self._result(
            found.name,
            is_fresh,
            f"{finding}; at most {duration(allowed)} is allowed",
            "find out why the source has no newer rows",
            columns=[column],
        )

    def _of_condition(
        self, found: RowCondition, columns: Sequence[str], finding: str
    ) -> CheckResult:
        return self._result(
            found.name,
            not found.bad_rows,
            finding,
            _CORRECT,
            columns=columns,
            bad_rows=found.bad_rows,
            examples=found.examples,
        )

    def _share(self, bad_rows: int) -> str:
        return f"{self._of_all(bad_rows)} {'has' if bad_rows == 1 else 'have'}"

    def _of_all(self, bad_rows: int) -> str:
        return f"{bad_rows:,} of {counted(self.rows, 'row')}"

    def _result(
        self,
        name: str,
        is_good: bool,
        finding: str,
        advice: str,
        *,
        columns: Sequence[str] = (),
        bad_rows: int = 0,
        examples: Sequence[str] = (),
    ) -> CheckResult:
        if examples:
            finding = f"{finding}, such as {'; '.join(examples)}"
        bad: Outcome = "warned" if self.checks.only_warns(name) else "failed"
        return CheckResult(
            name=name,
            columns=tuple(columns),
            outcome="passed" if is_good else bad,
            bad_rows=bad_rows,
            examples=tuple(examples),
            finding=finding,
            advice="" if is_good else advice,
        )
