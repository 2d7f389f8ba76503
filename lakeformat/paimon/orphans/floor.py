"""How old a file must be to go: older than any write that may still be under way."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.read.past_time import PastTime, past_millis, refuse_future
from lakeformat.paimon.read.time_travel import Moment, moment_text, to_millis

__all__ = ["AgeFloor", "find_floor"]

_DAY_MILLIS = 24 * 60 * 60 * 1000
_TOLERATED_LAG_MILLIS = 5 * 60 * 1000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgeFloor:
    """Files last changed at this moment or later stay."""

    millis: int
    reason: str
    override: str | None = None
    """What rule somebody has set aside, if one was."""
    commit: int | None = None
    """The newest snapshot, where its time and not the present sets the floor."""

    @property
    def moment(self) -> str:
        """The moment for people."""
        return moment_text(self.millis)

    def behind(self, lag_millis: int) -> AgeFloor:
        """Return the floor by the storage's clock, where that is late or this machine's is ahead.

        Files bear the storage's time: without this they look older than they are.
        """
        if lag_millis <= _TOLERATED_LAG_MILLIS:
            return self
        lag = timedelta(seconds=lag_millis // 1000)
        reason = f"{self.reason}; {lag} earlier, as the storage's clock is late by that"
        return replace(self, millis=self.millis - lag_millis, reason=reason)

    def before_commit(self, number: int, millis: int) -> AgeFloor:
        """Return the floor that also keeps the files written since a day before a commit.

        Without a later commit, a write that began then may still be under way.
        """
        if millis - _DAY_MILLIS >= self.millis:
            return self
        reason = (
            f"snapshot {number} of {moment_text(millis)} is the newest commit, and a write may be "
            "under way since the day before; older_than sets another age"
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
    """The floor asked for, if no write that may be under way is younger; a day ago if none is.

    ``running_since``: when the oldest write under way began, where somebody knows.
    """
    safe = AgeFloor(now_millis - _DAY_MILLIS, "files of a day are left to writes under way")
    if running_since is not None:
        began = to_millis(running_since)
        refuse_future("running_since", began, now_millis)
        # Its first file may look older than the write, by as much as clocks may differ.
        if began - _TOLERATED_LAG_MILLIS < safe.millis:
            reason = f"a write has been under way since {moment_text(began)}"
            safe = AgeFloor(began - _TOLERATED_LAG_MILLIS, reason)
    if older_than is None:
        return safe
    asked = past_millis("older_than", older_than, now_millis)
    if asked <= safe.millis:
        return AgeFloor(asked, "as asked for")
    rule = f"{moment_text(asked)} is after {safe.moment}, and {safe.reason}"
    if not allow_younger:
        raise InvalidRequestError(
            f"older_than: {rule}. Files that a write has made and not committed yet would go, and "
            "what it commits then would lack them. Take an earlier time; or stop every writer, "
            "and say allow_younger=True"
        )
    _log.warning("orphan files: the age floor is set aside: %s", rule)
    return AgeFloor(asked, "as asked for", override=rule)
