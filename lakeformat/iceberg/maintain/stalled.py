# SPDX-License-Identifier: Apache-2.0
"""Finds consumers that make no progress, although the expiry keeps snapshots for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from lakeformat.iceberg.expire.expire_report import IcebergExpireReport
from lakeformat.tables.consumers.report import ConsumerState
from lakeformat.tables.health.verdict import Reason
from lakeformat.tables.maintain.maintain_report import StepReport
from lakeformat.tables.maintain.request import MaintainRequest
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.types.count_text import counted
from lakeformat.types.duration_text import duration

__all__ = ["Consumers", "find_stalled"]

_DAY_MILLIS = 24 * 60 * 60 * 1000


class Consumers(Protocol):
    """The consumers of all branches of a table."""

    def list(self) -> Sequence[ConsumerState]:
        """Return every consumer with its progress."""

    def expire(self, older_than: PastTime, *, dry_run: bool) -> Sequence[ConsumerState]:
        """Delete the consumers without progress since ``older_than``, and return them.

        A dry run only returns them.
        """

    def unread(
        self, removed_branches: Collection[str] = (), *, without: Collection[ConsumerState] = ()
    ) -> set[int]:
        """Return the ids of the snapshots that consumers have not read yet.

        The consumers of ``removed_branches`` and those in ``without`` are ignored.
        """


def find_stalled(
    consumers: Consumers,
    argument: str,
    now_millis: int,
    steps: Sequence[StepReport],
    request: MaintainRequest,
) -> dict[str, Reason]:
    """Return the problem of each stalled consumer; the key is the text ``consumer '<id>'``.

    A consumer is stalled if it made no progress for a day, and has commits left to read. The
    result leaves out consumers whose next snapshot has expired, and consumers that a dry run would
    delete. It is empty if the expiry kept no snapshot for consumers. ``argument`` is the name of
    the table for commands in the advice.
    """
    held = sum(each.report.held for each in steps if isinstance(each.report, IcebergExpireReport))
    if not held:
        return {}
    now, deleted = now_millis, 0
    if request.expire_consumers is not None:
        deleted = past_millis("expire_consumers", request.expire_consumers, now)
    found = {}
    for each in consumers.list():
        is_stalled = deleted <= each.modified_millis < now - _DAY_MILLIS
        if is_stalled and each.behind and not each.is_stale:
            age = duration(now - each.modified_millis)
            found[f"consumer {each.id!r}"] = Reason(
                f"consumer {each.id!r} has not moved for {age}; all consumers together keep "
                f"{counted(held, 'snapshot')} from expiring",
                "restart its reader or, if the reader has ended for good, delete the consumer with "
                f"lake maintain {argument} --expire-consumers '{age}'",
            )
    return found
