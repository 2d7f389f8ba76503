# SPDX-License-Identifier: Apache-2.0
"""Finds consumers that make no progress, although the expiry keeps snapshots for them."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
from lakeformat.iceberg.maintain.subject import Subject
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.maintain.maintain_report import StepReport
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.past_time import past_millis
from lakeformat.types.count_text import counted
from lakeformat.types.duration_text import duration

__all__ = ["find_stalled"]

_DAY_MILLIS = 24 * 60 * 60 * 1000


def find_stalled(
    subject: Subject, steps: Sequence[StepReport], request: MaintainRequest
) -> dict[str, Reason]:
    """Return a problem for each consumer without progress for a day, if snapshots are kept for it.

    In a dry run, consumers that would be deleted are left out.
    """
    held = sum(each.report.held for each in steps if isinstance(each.report, IcebergExpireReport))
    if not held:
        return {}
    now, deleted = subject.handle.environment.now_millis(), 0
    if request.expire_consumers is not None:
        deleted = past_millis("expire_consumers", request.expire_consumers, now)
    found = {}
    for each in subject.consumers.list():
        is_stalled = deleted <= each.modified_millis < now - _DAY_MILLIS
        if is_stalled and each.behind and not each.is_stale:
            age = duration(now - each.modified_millis)
            found[f"consumer {each.id!r}"] = Reason(
                f"consumer {each.id!r} has not moved for {age}, and consumers keep "
                f"{counted(held, 'snapshot')} from expiring",
                "restart its reader or, if it has ended, lake maintain "
                f"{subject.argument} --expire-consumers '{age}'",
            )
    return found
