# SPDX-License-Identifier: Apache-2.0
"""Finds the consumers that prevent snapshots of a table from expiring."""

from __future__ import annotations

from collections.abc import Sequence

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.consumers import StalledConsumer, find_stalled
from lakeformat.paimon.expire.retention import changelog_rules, is_decoupled, snapshot_retention
from lakeformat.paimon.handle import TableHandle

__all__ = ["find_holders"]

_DAY_MILLIS = 24 * 60 * 60 * 1000


def find_holders(
    handle: TableHandle, *, without: Sequence[str] = ()
) -> tuple[StalledConsumer, ...]:
    """Return the consumers that have not moved for a day and for which overdue snapshots are kept.

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
