# SPDX-License-Identifier: Apache-2.0
"""Calculates the numbers after a maintenance from the reports of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakeformat.tables.maintain.maintain_report import Figures, StepReport
from lakeformat.tables.orphan_report import OrphanReport

__all__ = ["expected", "with_dead_files"]


def expected(before: Figures, steps: Sequence[StepReport]) -> Figures:
    """Return the numbers that a table would have after the steps of a dry run. ``before`` has the
    numbers that it has now.

    A number is None if the dry run cannot know it.
    """
    files_in, files_out = (sum(s.files_in for s in steps), sum(s.files_out for s in steps))
    return Figures(
        files=_less(before.files, files_in - files_out),
        snapshots=_less(before.snapshots, sum(step.snapshots for step in steps)),
        changelogs=_less(before.changelogs, sum(step.changelogs for step in steps)),
    )


def with_dead_files(
    before: Figures, after: Figures, steps: Sequence[StepReport]
) -> tuple[Figures, Figures]:
    """Return ``before`` and ``after`` with the numbers of orphan files, from the report of the
    step that removes them.

    ``before`` gets the orphan files that the step found, ``after`` those that it did not remove or,
    in a dry run, would not remove. Without such a report both are returned unchanged.
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
