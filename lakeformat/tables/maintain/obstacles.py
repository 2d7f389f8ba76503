# SPDX-License-Identifier: Apache-2.0
"""Finds the problems of a table that remain after its maintenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lakeformat.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidRequestError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.maintain.maintain_report import (
    COMPACT,
    COMPACT_DELETES,
    COMPACT_MANIFESTS,
    EXPIRE,
    ORPHANS,
    StepReport,
)

__all__ = ["find_obstacles"]

_COMMANDS = {
    COMPACT: "lake compact ",
    COMPACT_DELETES: "lake compact-deletes ",
    COMPACT_MANIFESTS: "lake rewrite-manifests ",
    EXPIRE: "lake expire ",
    ORPHANS: "lake orphans ",
}
"""The beginning of each step's command. After a failed step, advice with this beginning is left
out, because it would only repeat the step.
"""


def find_obstacles(
    table: str,
    steps: Sequence[StepReport],
    holders: Mapping[str, Reason],
    reasons: Sequence[Reason],
) -> tuple[Reason, ...]:
    """Return the remaining problems of a table.

    The order is: failed steps, work that a step has left, stalled consumers, and last ``reasons``,
    the problems in the health report. A problem is left out if a failed step or a stalled consumer
    explains it. ``holders`` has the problem of each stalled consumer. Its keys, such as
    ``consumer 'x'``, are the names of the consumers in the texts of problems.
    """
    errors = [str(step.error) for step in steps if step.error is not None]
    stalled = [each for each in holders.values() if not any(e in each.finding for e in errors)]
    found = [*_of_failures(table, steps, reasons), *_of_left_work(steps), *stalled]
    again = tuple(_COMMANDS[step.step] for step in steps if step.error and step.step in _COMMANDS)
    for reason in reasons:
        is_known = any(name in reason.finding for name in holders) or any(
            reason.advice in error or error in reason.finding for error in errors
        )
        is_known = is_known or reason.advice.startswith(again)  # advice to repeat a failed step
        found += [] if is_known else [reason]
    return tuple(found)


def _of_failures(
    table: str, steps: Sequence[StepReport], reasons: Sequence[Reason]
) -> Iterator[Reason]:
    """Yield one problem for each cause of failed steps, with the names of these steps.

    If an entry of ``reasons`` has the same cause, the problem gets the advice of that entry.
    """
    by_cause = dict[str, list[StepReport]]()
    for step in steps:
        if step.error is not None:
            why = getattr(step.error, "why", None)
            by_cause.setdefault(why or str(step.error), []).append(step)
    for cause, failed in by_cause.items():
        names = " and ".join(step.step for step in failed)
        found = next((each for each in reasons if cause in each.finding), None)
        if found is not None:
            yield replace(found, finding=f"{names} failed: {cause}")
        else:
            yield _of_failure(table, names, cause, failed[0])


def _of_failure(table: str, names: str, cause: str, step: StepReport) -> Reason:
    """Return the problem and the advice for one cause of failure.

    ``names`` has the names of all maintenance steps that failed for this cause, and ``step`` is the
    report of the first of them.
    """
    error, again = step.error, f"lake maintain {table}"
    if isinstance(error, CommitConflictError | UnavailableError):
        return Reason(f"{names} failed: {cause}", again)
    if isinstance(error, UnsupportedError) and error.advice is not None:
        return Reason(f"{names} failed: {cause}", error.advice)
    if step.step == ORPHANS and isinstance(error, InvalidRequestError):
        listing = f"lake orphans {table} lists the files without deleting any"
        return Reason(f"{names} failed: {cause}", listing)
    if isinstance(error, UnsupportedError):
        engine = "this version cannot do this step: run it with another engine, such as Spark"
        return Reason(f"{names} failed: {cause}", engine)
    # The message of a CorruptTableError ends with "; " and the next step.
    said, _, advice = cause.rpartition("; ")
    if not said or not isinstance(error, CorruptTableError) or error.report is not None:
        return Reason(f"{names} failed: {cause}", f"correct the cause, then {again}")
    return Reason(f"{names} failed: {said}", f"{advice}, then {again}")


def _of_left_work(steps: Sequence[StepReport]) -> Iterator[Reason]:
    for step in steps:
        if step.error is None and step.advice is not None:
            yield Reason(f"{step.step}: {step.reason}", step.advice)
