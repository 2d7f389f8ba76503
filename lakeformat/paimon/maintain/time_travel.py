# SPDX-License-Identifier: Apache-2.0
"""A sentence for the maintenance report about files that only older snapshots need."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.paimon.expire import ExpireReport
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.health import HealthReport
from lakeformat.paimon.health.history_reasons import retention_text
from lakeformat.tables.maintain.maintain_report import StepReport
from lakeformat.tables.maintain.time_travel import files_for_time_travel

__all__ = ["time_travel_note"]


def time_travel_note(
    handle: TableHandle, health: HealthReport | None, steps: Sequence[StepReport], *, dry_run: bool
) -> str | None:
    """Return a sentence with the number of files kept for older snapshots, and when they are
    deleted.

    Return None if there are no such files.
    """
    storage = None if health is None else health.storage
    what = files_for_time_travel(storage, steps, dry_run=dry_run)
    if what is None:
        return None
    return (
        f"{what}: the retention keeps the snapshots of {retention_text(handle.options)}"
        f"{_oldest_holder(health, steps)}. "
        f"Once newer commits have replaced those snapshots, lake maintain {handle.argument} "
        "deletes the files"
    )


def _oldest_holder(health: HealthReport | None, steps: Sequence[StepReport]) -> str:
    """Return ", and <tag, branch or consumer> keeps snapshot <id>" for the oldest one, or "".

    Consumers that a step has deleted are skipped.
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
