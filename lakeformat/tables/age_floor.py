# SPDX-License-Identifier: Apache-2.0
"""Finds the age limit for orphan files, so that files of a write in progress are kept."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.past_time import PastTime, past_millis, refuse_future
from lakeformat.types.duration_text import exact_duration

__all__ = ["AgeFloor", "find_floor"]

_DAY_MILLIS = 24 * 60 * 60 * 1000
_TOLERATED_LAG_MILLIS = 5 * 60 * 1000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgeFloor:
    """The age limit of a search for orphan files.

    Files changed at ``millis`` (epoch milliseconds) or later are kept; ``reason`` explains the
    limit.
    """

    millis: int
    reason: str
    override: str | None = None
    """The safety rule that ``allow_younger`` overrode, as text; None if the limit obeys the
    rule.
    """
    commit: int | None = None
    """The number of the newest snapshot, if ``before_commit`` made the limit earlier by more than 5
    minutes; else None.
    """

    @property
    def moment(self) -> str:
        """The limit as text, such as ``2024-01-31 10:00:00.000Z``."""
        return moment_text(self.millis)

    def behind(self, lag_millis: int) -> AgeFloor:
        """Return a limit that is earlier by ``lag_millis``, the lag of the storage's clock.

        The storage sets the time of each file, so a storage whose clock is behind makes new files
        look older. A lag of at most 5 minutes does not change the limit.
        """
        if lag_millis <= _TOLERATED_LAG_MILLIS:
            return self
        lag = exact_duration(lag_millis // 1000 * 1000)
        reason = (
            f"{self.reason}; the limit is {lag} earlier, because the storage's clock is behind by "
            "that much"
        )
        return replace(self, millis=self.millis - lag_millis, reason=reason)

    def before_commit(self, number: int, millis: int) -> AgeFloor:
        """Return a limit that is at least one day before the newest commit.

        ``number`` and ``millis`` are the number and the time of that commit's snapshot. The table
        does not show which writes are in progress. So the limit keeps the files of a write that
        began at most one day before the newest commit, or after it.
        """
        if millis - _DAY_MILLIS >= self.millis:
            return self
        reason = (
            f"snapshot {number} from {moment_text(millis)} is the newest commit, and a write may "
            "have been in progress since the day before; set older_than for another age"
        )
        is_old = self.millis - (millis - _DAY_MILLIS) > _TOLERATED_LAG_MILLIS
        commit = number if is_old else None
        return replace(self, millis=millis - _DAY_MILLIS, reason=reason, commit=commit)


def find_floor(
    now_millis: int,
    *,
    older_than: PastTime | None = None,
    running_since: Moment | None = None,
    allow_younger: bool = False,
) -> AgeFloor:
    """Return the age limit of a search for orphan files: ``older_than`` or the default.

    The default is one day before ``now_millis`` or 5 minutes before ``running_since``, the earlier
    of the two. ``running_since`` is the start of the oldest write in progress, if you know it.

    An ``older_than`` that is later than the default raises ``InvalidRequestError``, because files
    of a write in progress could be deleted. ``allow_younger`` allows such a time.
    """
    safe = AgeFloor(
        now_millis - _DAY_MILLIS, "files newer than one day are kept for writes in progress"
    )
    if running_since is not None:
        began = to_millis(running_since)
        refuse_future("running_since", began, now_millis)
        # Clocks differ, so the first file of the write may look older than the write.
        if began - _TOLERATED_LAG_MILLIS < safe.millis:
            reason = f"a write has been in progress since {moment_text(began)}"
            safe = AgeFloor(began - _TOLERATED_LAG_MILLIS, reason)
    if older_than is None:
        return safe
    asked = past_millis("older_than", older_than, now_millis)
    if asked <= safe.millis:
        return AgeFloor(asked, "as requested")
    rule = f"{moment_text(asked)} is after the safe limit {safe.moment}: {safe.reason}"
    if not allow_younger:
        raise InvalidRequestError(
            f"older_than: {rule}. Files of a write that is not committed yet could be deleted, and "
            "its commit would refer to missing files. Pass an earlier time, or stop every writer "
            "and pass allow_younger=True"
        )
    _log.warning(
        "orphan files: allow_younger overrides the age limit: %s. Files of writers that still run "
        "may be deleted: stop all writers",
        rule,
    )
    return AgeFloor(asked, "as requested", override=rule)
