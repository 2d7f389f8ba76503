# SPDX-License-Identifier: Apache-2.0
"""Maintains one table: measures it, runs the steps, and measures it again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.paimon.compact.other_compactor import find_other_compactor
from lakeformat.paimon.consumers import StalledConsumer, find_stalled
from lakeformat.paimon.expire import ExpireReport
from lakeformat.paimon.expire.retention import changelog_rules, is_decoupled, snapshot_retention
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health import HealthReport, check_health
from lakeformat.paimon.health.history_reasons import retention_text
from lakeformat.paimon.health.misread_options import misread_reasons, without_misread
from lakeformat.paimon.maintain.steps import STEPS
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.orphans.lost_snapshots import lost_snapshots
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.maintain.figures import expected, with_dead_files
from lakeformat.tables.maintain.maintain_report import (
    ORPHANS,
    Figures,
    MaintainReport,
    StepReport,
)
from lakeformat.tables.maintain.obstacles import find_obstacles
from lakeformat.tables.maintain.orphans import refused
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.maintain.run import HEALTH, StepRunner, failed_step, log_report
from lakeformat.tables.maintain.time_travel import files_for_time_travel

__all__ = ["maintain"]

_DAY_MILLIS = 24 * 60 * 60 * 1000

_log = logging.getLogger(__name__)


def maintain(handle: TableHandle, request: MaintainRequest) -> MaintainReport:
    """Run all steps of a maintenance in order; a failed step does not stop the next ones.

    Each step does only the work that is due, so after an interruption repeat the call. Raise
    InvalidRequestError for a request that is not valid.
    """
    request.check(handle.environment.now_millis())
    table = handle.name
    request.begins(table, HEALTH)
    _, before = _measure(handle)
    steps_to_run = STEPS
    if (lost := lost_snapshots(handle, {handle.layout.branch: 0})) is not None:
        steps_to_run = {**STEPS, ORPHANS: refused(STEPS[ORPHANS], lost)}
    steps = StepRunner(table, handle.uri, handle, _log).run(steps_to_run, request)
    request.begins(table, HEALTH)
    health, after, holders = _look_again(handle, steps)
    note = _time_travel_note(without_misread(handle), health, steps, dry_run=request.dry_run)
    reasons = _lasting(handle) if health is None or request.dry_run else health.reasons
    if request.dry_run:  # nothing has changed, so a second measurement would give ``before``
        after = expected(before, steps)
    before, after = with_dead_files(before, after, steps)
    stalled = {
        f"consumer {each.id!r}": Reason(each.finding, each.advice_to_maintain(handle.argument))
        for each in holders
    }
    report = MaintainReport(
        table=table,
        location=handle.uri,
        dry_run=request.dry_run,
        before=before,
        after=after,
        steps=tuple(steps),
        obstacles=find_obstacles(handle.argument, steps, stalled, reasons),
        note=note,
    )
    log_report(_log, report)
    return report


def _lasting(handle: TableHandle) -> tuple[Reason, ...]:
    """Return the health reasons that no maintenance step removes.

    They are about invalid options, and about a second program that compacts the table.
    """
    other = find_other_compactor(without_misread(handle))
    beside = () if other is None else (Reason(other.finding, other.advice),)
    return (*misread_reasons(handle), *beside)


def _look_again(
    handle: TableHandle, steps: list[StepReport]
) -> tuple[HealthReport | None, Figures, tuple[StalledConsumer, ...]]:
    """Return the health, the numbers and the stalled consumers after the steps.

    If a LakeError is raised, add it to ``steps`` as a failed step, and return None as the health.
    So the reports of the other steps are not lost.
    """
    forgotten = [
        name
        for step in steps
        if isinstance(step.report, ExpireReport)
        for name in step.report.consumers
    ]
    try:
        holders = _find_holders(without_misread(handle), without=forgotten)
        return *_measure(handle), holders
    except LakeError as error:
        steps.append(failed_step(HEALTH, error))
        return None, Figures(), ()


def _measure(handle: TableHandle) -> tuple[HealthReport, Figures]:
    """Return the health of a table, and the numbers that a maintenance report compares.

    Orphan files are not counted, because that needs a listing.
    """
    health = check_health(handle)
    files, storage = health.files, health.storage
    return health, Figures(
        verdict=health.verdict,
        score=health.score,
        files=files.files,
        level_0_files=files.level_0_files,
        most_sorted_runs=files.most_sorted_runs,
        live_bytes=storage.live_bytes,
        snapshots=health.snapshots.count,
        changelogs=len(changelog_ids(handle.storage, handle.layout)),
        time_travel_files=storage.time_travel_files,
        time_travel_bytes=storage.time_travel_bytes,
    )


def _find_holders(
    handle: TableHandle, *, without: Sequence[str] = ()
) -> tuple[StalledConsumer, ...]:
    """Return the consumers that prevent an expiry, because they made no progress for a day.

    Consumers with an id in ``without`` are left out.
    """
    options, now = handle.options, handle.environment.now_millis()
    only_changelogs = is_decoupled(options) and options.consumer_changelog_only
    try:
        snapshots = None if only_changelogs else snapshot_retention(options, now)
    except InvalidRequestError:  # the step ``expire`` has already failed with this error
        return ()
    return find_stalled(
        handle,
        snapshots=snapshots,
        changelogs=changelog_rules(options, now),
        without=without,
        unmoved_for=_DAY_MILLIS,
    )


def _time_travel_note(
    handle: TableHandle, health: HealthReport | None, steps: Sequence[StepReport], *, dry_run: bool
) -> str | None:
    """Return a sentence with the number of files that are kept for older snapshots, and with the
    command that deletes them later.

    Return None if there are no such files.
    """
    storage = None if health is None else health.storage
    what = files_for_time_travel(storage, steps, dry_run=dry_run)
    if what is None:
        return None
    holder = _oldest_holder(health, steps)
    files = "the files that nothing else keeps" if holder else "the files"
    return (
        f"{what}: the retention keeps the snapshots of {retention_text(handle.options)}{holder}. "
        f"Once newer commits have replaced those snapshots, lake maintain {handle.argument} "
        f"deletes {files}"
    )


def _oldest_holder(health: HealthReport | None, steps: Sequence[StepReport]) -> str:
    """Return ", and <holder> keeps snapshot <id>", or "" without a holder.

    The holder is the tag, branch or consumer that keeps the oldest snapshot. Consumers that a step
    has deleted are skipped.
    """
    deleted = {
        f"consumer {name!r}"
        for step in steps
        if isinstance(step.report, ExpireReport)
        for name in step.report.consumers
    }
    holders = () if health is None else health.snapshots.holders
    for each in holders:
        if each.what not in deleted:
            return f", and {each.what} keeps snapshot {each.snapshot_id}"
    return ""
