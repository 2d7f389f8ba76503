"""Makes the summary at the end of a test run: the steps, the slowest tests, the reasons of skips,
and a line with the totals.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """The cases that the exhaustive tests run: a sample that the seed picks, or all cases."""

    seed: str
    is_whole: bool = False

    @property
    def command(self) -> str:
        """The start of a command that repeats the run."""
        return f"SEED={self.seed} bin/test{' --all' if self.is_whole else ''}"


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step of the run."""

    name: str
    seconds: float
    passed: int
    failed: int
    skip_reasons: tuple[str, ...] = ()
    """The reason of each skipped test."""
    rerun: str = ""
    """The command that runs the first failed test again; empty without a failure."""
    mend: str = ""
    """The command that may repair the failure; empty if there is none."""
    slowest: tuple[tuple[float, str], ...] = ()
    """Seconds and name of each of the slowest tests, slowest first."""
    is_test: bool = field(default=True, kw_only=True)


def read_junit(report: Path, *, name: str, seconds: float, exit_code: int) -> StepResult:
    """Return the result of a pytest run from its report. If the run has failed, but its report
    has no failed test, the result counts one failure.
    """
    cases = read_cases(report)
    failing = [case for case in cases if is_failing(case)]
    skipped = [case for case in cases if case not in failing and case.find("skipped") is not None]
    failed = len(failing)
    # 5 means "no test collected", which the totals show.
    if exit_code not in (0, 5) and not failed:
        failed = 1
    rerun = f"bin/test {name}"
    if failing:
        rerun += f" -- {shlex.quote(node_id(failing[0]))}"
    return StepResult(
        name,
        seconds,
        passed=len(cases) - len(failing) - len(skipped),
        failed=failed,
        skip_reasons=tuple(skip_reason(case) for case in skipped),
        rerun=rerun if failed else "",
        slowest=slowest_of(cases),
    )


def slowest_of(cases: Sequence[ElementTree.Element]) -> tuple[tuple[float, str], ...]:
    """Return the seconds and the name of each of the 20 slowest tests, slowest first; set-up and
    clean-up are included.
    """
    times = [(float(case.get("time", "0")), node_id(case)) for case in cases]
    return tuple(sorted(times, reverse=True)[:SLOWEST])


def read_cases(report: Path) -> list[ElementTree.Element]:
    """Return the tests in a report; empty if pytest has not written a complete report."""
    try:
        return list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


def is_failing(case: ElementTree.Element) -> bool:
    """Return True if a test, its set-up or its clean-up has failed."""
    return case.find("failure") is not None or case.find("error") is not None


def skip_reason(case: ElementTree.Element) -> str:
    """Return the reason why a test was skipped, or why it is expected to fail."""
    skip = case.find("skipped")
    reason = skip.get("message", "") if skip is not None else ""
    is_gap = skip is not None and skip.get("type") == "pytest.xfail"
    return f"known gap: {reason}" if is_gap else reason or "no reason given"


def node_id(case: ElementTree.Element) -> str:
    """Return the pytest id of a test, with which pytest runs only this test."""
    file = case.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    inside = case.get("classname", "").removeprefix(module).strip(".")
    # A file that does not load is reported as a test named like its module.
    name = case.get("name", "").removeprefix(module)
    parts = [file, *inside.split("."), name]
    return "::".join(part for part in parts if part)


def format_summary(
    results: Sequence[StepResult],
    *,
    left_out: Sequence[str] = (),
    sample: Sample | None = None,
) -> str:
    """Return the summary; programs can parse its last line.

    ``left_out`` has a note for each group that was not run, with its requirements and its command.
    """
    lines = ["", "== summary =="]
    lines += [format_step(result) for result in results] or ["no test matched"]
    slowest = sorted((test for result in results for test in result.slowest), reverse=True)
    if slowest:
        lines += ["", f"slowest {SLOWEST} tests:" if len(slowest) > SLOWEST else "slowest tests:"]
        lines += [f"  {seconds:>6.1f} s  {name}" for seconds, name in slowest[:SLOWEST]]
    reasons = Counter(reason for result in results for reason in result.skip_reasons)
    if reasons:
        lines += ["", "skipped:"]
        lines += [f"  {count:>4}  {reason}" for reason, count in reasons.most_common()]
    lines += ["", *(f"not run:  {note}" for note in left_out)] if left_out else []
    mends = [result.mend for result in results if result.mend]
    if mends:
        lines += ["", f"repair automatically:  {' && '.join(mends)}"]
    failing = [result for result in results if result.rerun]
    if sample and any(result.is_test for result in results):
        ran = "all cases ran" if sample.is_whole else "a sample of the cases ran; --all runs all"
        again = f"{sample.command} with the same groups and options ({ran})"
        lines += ["", f"run these tests again:  {again}"]
    if failing:
        rerun = failing[0].rerun
        if sample and failing[0].is_test:
            rerun = rerun.replace("bin/test", sample.command, 1)
        lines += ["", f"run the first failure again:  {rerun}"]
    passed = sum(result.passed for result in results if result.is_test)
    failed = sum(result.failed for result in results)
    skipped = sum(len(result.skip_reasons) for result in results)
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped"]
    return "\n".join(lines)


def format_step(result: StepResult) -> str:
    """Return the line about a step: the verdict, the name, the counts and the duration."""
    verdict = "FAILED" if result.failed else "ok"
    counted = ""
    if result.is_test:
        counted = f"{result.passed} passed"
        counted += f", {result.failed} failed" if result.failed else ""
        counted += f", {len(result.skip_reasons)} skipped" if result.skip_reasons else ""
    return f"{verdict:<7} {result.name:<14} {counted:<34} {result.seconds:>6.1f} s"
