"""The obstacles to a healthy table that are left once every step has done what it may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakeformat.consumers import StalledConsumer, find_stalled
from lakeformat.errors import CommitConflictError, InvalidRequestError, LakeError, UnavailableError
from lakeformat.expire.retention import changelog_rules, is_decoupled, snapshot_retention
from lakeformat.handle import TableHandle
from lakeformat.health import HealthReport
from lakeformat.health.report import Reason
from lakeformat.maintain.report import ORPHANS, StepReport

__all__ = ["find_holders", "find_obstacles"]

_DAY_MILLIS = 24 * 60 * 60 * 1000


def find_obstacles(
    table: str,
    steps: Sequence[StepReport],
    holders: Sequence[StalledConsumer],
    health: HealthReport | None,
) -> tuple[Reason, ...]:
    """Failed steps first, then consumers that hold snapshots, then the reasons of the verdict."""
    of_steps = [*_of_steps(table, steps)]
    found = [*of_steps, *(Reason(each.finding, each.advice_to_maintain(table)) for each in holders)]
    named = [f"consumer {each.id!r}" for each in holders]
    for reason in () if health is None else health.reasons:
        is_known = any(name in reason.finding for name in named) or any(
            reason.advice in each.finding for each in of_steps
        )
        found += [] if is_known else [reason]
    return tuple(found)


def find_holders(
    handle: TableHandle, *, without: Sequence[str] = ()
) -> tuple[StalledConsumer, ...]:
    """Consumers unmoved for a day that keep what the table's retention would let expire."""
    options, now = handle.options, handle.environment.now_millis()
    only_changelogs = is_decoupled(options) and options.consumer_changelog_only
    try:
        snapshots = None if only_changelogs else snapshot_retention(options, now)
    except InvalidRequestError:  # the step that expires has said so
        return ()
    return find_stalled(
        handle,
        snapshots=snapshots,
        changelogs=changelog_rules(options, now),
        without=without,
        unmoved_for=_DAY_MILLIS,
    )


def _of_steps(table: str, steps: Sequence[StepReport]) -> Iterator[Reason]:
    for step in steps:
        if step.error is not None:
            yield Reason(f"{step.step} failed: {step.error}", _advice(table, step.step, step.error))
        elif step.advice is not None:
            yield Reason(f"{step.step}: {step.reason}", step.advice)


def _advice(table: str, step: str, error: LakeError) -> str:
    if isinstance(error, CommitConflictError | UnavailableError):
        return f"lake maintain {table}"
    if step == ORPHANS and isinstance(error, InvalidRequestError):
        return f"lake orphans {table} lists them without deleting any"
    return "as the message says"
