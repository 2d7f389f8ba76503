# SPDX-License-Identifier: Apache-2.0
"""Finds the problems of a table that remain after all steps of its maintenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lakeformat.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidRequestError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.paimon.consumers import StalledConsumer, find_stalled
from lakeformat.paimon.expire.retention import changelog_rules, is_decoupled, snapshot_retention
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.maintain.maintain_report import COMPACT, EXPIRE, ORPHANS, StepReport
from lakeformat.tables.health.verdict import Reason

__all__ = ["find_holders", "find_obstacles"]

_COMMANDS = {COMPACT: "lake compact ", EXPIRE: "lake expire ", ORPHANS: "lake orphans "}
"""The command of each step, as an advice begins with it."""
_DAY_MILLIS = 24 * 60 * 60 * 1000


def find_obstacles(
    table: str,
    steps: Sequence[StepReport],
    holders: Sequence[StalledConsumer],
    reasons: Sequence[Reason],
) -> tuple[Reason, ...]:
    """Return failed steps first, then stalled consumers, then the reasons of the verdict."""
    errors = [str(step.error) for step in steps if step.error is not None]
    of_consumers = [Reason(each.finding, each.advice_to_maintain(table)) for each in holders]
    found = [*_of_failures(table, steps, reasons), *_of_left_work(steps), *of_consumers]
    named = [f"consumer {each.id!r}" for each in holders]
    again = tuple(_COMMANDS[step.step] for step in steps if step.error and step.step in _COMMANDS)
    for reason in reasons:
        is_known = any(name in reason.finding for name in named) or any(
            reason.advice in error or error in reason.finding for error in errors
        )
        is_known = is_known or reason.advice.startswith(again)  # that step has just failed
        found += [] if is_known else [reason]
    return tuple(found)


def find_holders(
    handle: TableHandle, *, without: Sequence[str] = ()
) -> tuple[StalledConsumer, ...]:
    """Return consumers, unmoved for a day, that keep snapshots beyond the table's retention."""
    options, now = handle.options, handle.environment.now_millis()
    only_changelogs = is_decoupled(options) and options.consumer_changelog_only
    try:
        snapshots = None if only_changelogs else snapshot_retention(options, now)
    except InvalidRequestError:  # the step ``expire`` has failed with this error
        return ()
    return find_stalled(
        handle,
        snapshots=snapshots,
        changelogs=changelog_rules(options, now),
        without=without,
        unmoved_for=_DAY_MILLIS,
    )


def _of_failures(
    table: str, steps: Sequence[StepReport], reasons: Sequence[Reason]
) -> Iterator[Reason]:
    """Yield one obstacle for each cause, with the names of the steps that failed for it."""
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
    """Return the finding and the advice for one cause."""
    error, again = step.error, f"lake maintain {table}"
    if isinstance(error, CommitConflictError | UnavailableError):
        return Reason(f"{names} failed: {cause}", again)
    if isinstance(error, UnsupportedError) and error.advice is not None:
        return Reason(f"{names} failed: {cause}", error.advice)
    if step.step == ORPHANS and isinstance(error, InvalidRequestError):
        listing = f"lake orphans {table} lists them without deleting any"
        return Reason(f"{names} failed: {cause}", listing)
    if isinstance(error, UnsupportedError):
        engine = "this version cannot do this step: run it with another engine, such as Spark"
        return Reason(f"{names} failed: {cause}", engine)
    # The message of a CorruptTableError ends with a semicolon and the next step.
    said, _, advice = cause.rpartition("; ")
    if not said or not isinstance(error, CorruptTableError) or error.report is not None:
        return Reason(f"{names} failed: {cause}", f"correct the cause, then {again}")
    return Reason(f"{names} failed: {said}", f"{advice}, then {again}")


def _of_left_work(steps: Sequence[StepReport]) -> Iterator[Reason]:
    for step in steps:
        if step.error is None and step.advice is not None:
            yield Reason(f"{step.step}: {step.reason}", step.advice)
