# SPDX-License-Identifier: Apache-2.0
"""The figures of a table, measured before and after its maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health import HealthReport, check_health
from lakeformat.paimon.maintain.maintain_report import Figures, StepReport
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.tables.orphan_report import OrphanReport

__all__ = ["expected", "measure", "with_dead_files"]


def measure(handle: TableHandle) -> tuple[HealthReport, Figures]:
    """Return the health of a table, and its figures without orphan files, which need a listing."""
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


def expected(before: Figures, steps: Sequence[StepReport]) -> Figures:
    """Return the figures that a dry run expects after its steps; None where plans lack them."""
    files_in, files_out = (sum(s.files_in for s in steps), sum(s.files_out for s in steps))
    return Figures(
        files=_less(before.files, files_in - files_out),
        snapshots=_less(before.snapshots, sum(step.snapshots for step in steps)),
        changelogs=_less(before.changelogs, sum(step.changelogs for step in steps)),
    )


def with_dead_files(
    before: Figures, after: Figures, steps: Sequence[StepReport]
) -> tuple[Figures, Figures]:
    """Return ``before`` with the orphan files that the last step found, ``after`` with those it
    left.
    """
    for step in steps:
        found = step.report
        if isinstance(found, OrphanReport):
            files, held = found.orphan_files, found.orphan_bytes
            left = (files - found.removed_files, held - found.removed_bytes)
            if found.dry_run and found.objection is None:
                left = (0, 0)
            return (
                replace(before, dead_files=files, dead_bytes=held),
                replace(after, dead_files=left[0], dead_bytes=left[1]),
            )
    return before, after


def _less(number: int | None, gone: int) -> int | None:
    return None if number is None else number - gone
