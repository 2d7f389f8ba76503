# SPDX-License-Identifier: Apache-2.0
"""Counts snapshots and changelogs beyond their retention, and finds the consumer that keeps
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.paimon.consumers import (
    Guard,
    Progress,
    expire_consumers,
    read_progress,
)
from lakeformat.paimon.expire.retention import (
    Retention,
    changelog_retention,
    count_overdue,
    count_overdue_changelogs,
    is_decoupled,
    snapshot_retention,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids

__all__ = ["Overdue", "OverdueNumbers", "find_overdue", "forgotten_consumers"]


_TOLERATED = 10
_TOLERATED_PART = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueNumbers:
    """Counts of all snapshots (or changelogs) of a table, and of those beyond the retention."""

    count: int = 0
    overdue: int = 0
    """The number of snapshots (or changelogs) that the retention of the table options does not
    keep.
    """
    expirable: int = 0
    """The number that an expiry would delete now; consumers keep the other overdue ones."""
    first_left: int = 0
    """The id of the oldest snapshot (or changelog) that an expiry would keep now; 0 if none
    remains.
    """
    first_kept: int = 0
    """The id of the oldest snapshot (or changelog) within the retention; 0 if there is none."""

    @property
    def backlog(self) -> float:
        """The share, from 0 to 1, of snapshots (or changelogs) that an expiry would delete now.

        Writers expire only from time to time, so a small backlog is normal. The share is 0 if at
        most 10 would be deleted, or at most half as many as would be kept.
        """
        return _share(self.expirable, self.count)

    @property
    def held_backlog(self) -> float:
        """The share, from 0 to 1, of snapshots (or changelogs) that are overdue.

        The share is 0 if consumers keep none of the overdue ones. It is also 0 if at most 10 are
        overdue, or at most half as many as the retention keeps.
        """
        return _share(self.overdue, self.count) if self.expirable < self.overdue else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """The numbers of snapshots and changelogs beyond their retention, and the consumer that keeps
    them.
    """

    snapshots: OverdueNumbers = OverdueNumbers()
    changelogs: OverdueNumbers = OverdueNumbers()
    changelogs_outlive: bool = False
    """True if an option keeps changelogs longer than their snapshots."""
    reader: Guard | None = None
    """The consumer that is furthest behind, if consumers keep overdue snapshots or changelogs; else
    None.
    """
    refusal: str | None = None
    """The message of the error that an expiry would raise, because table options contradict each
    other.

    None if an expiry would run.
    """

    @property
    def held_backlog(self) -> float:
        """The larger ``held_backlog`` of two: that of snapshots and that of changelogs."""
        return max(self.snapshots.held_backlog, self.changelogs.held_backlog)


def find_overdue(handle: TableHandle) -> Overdue:
    """Count the snapshots and changelogs beyond the retention that the table options set."""
    options, now = handle.options, handle.environment.now_millis()
    ids = snapshot_ids(handle.storage, handle.layout)
    told = changelog_ids(handle.storage, handle.layout)
    outlive = is_decoupled(options)
    counts = (OverdueNumbers(count=len(ids)), OverdueNumbers(count=len(told)))
    try:
        of_snapshots = snapshot_retention(options, now)
        of_changelogs = changelog_retention(options, now) if told else None
    except InvalidRequestError as refusal:
        return Overdue(snapshots=counts[0], changelogs=counts[1], refusal=str(refusal))
    progress = _progress(handle)
    guard = None if progress is None else progress.guard
    of_those = guard
    if progress is not None and outlive and options.consumer_changelog_only:
        of_those = progress.of_snapshots
    snapshots = _numbers(
        ids, _overdue_snapshots(handle, ids, of_snapshots), of_those, is_held=progress is None
    )
    changelogs = counts[1]
    if of_changelogs is not None and ids:
        overdue = _overdue_changelogs(handle, told, ids[-1], of_changelogs)
        changelogs = _numbers(told, overdue, guard, is_held=progress is None)
    holds = any(each.expirable < each.overdue for each in (snapshots, changelogs))
    return Overdue(
        snapshots=snapshots,
        changelogs=changelogs,
        changelogs_outlive=outlive,
        reader=guard if holds else None,
    )


def forgotten_consumers(handle: TableHandle) -> list[str]:
    """Return the ids of the consumers that an expiry would delete by
    ``consumer.expiration-time``.
    """
    after = handle.options.consumer_expiration_time_millis
    if after is None:
        return []
    older_than = handle.environment.now_millis() - after
    return [*expire_consumers(handle, older_than=older_than, dry_run=True).removed]


def _progress(handle: TableHandle) -> Progress | None:
    """Return the progress of the consumers.

    Return None if a consumer file is damaged: no snapshot may expire then.
    """
    try:
        return read_progress(handle, without=forgotten_consumers(handle))
    except CorruptTableError:
        return None


def _overdue_snapshots(handle: TableHandle, ids: Sequence[int], retention: Retention) -> int:
    def time_of(number: int) -> int | None:
        found = read_snapshot_if_present(handle.storage, handle.layout, number)
        return None if found is None else found.time_millis

    return count_overdue(ids, time_of, retention)


def _overdue_changelogs(
    handle: TableHandle, ids: Sequence[int], newest: int, retention: Retention
) -> int:
    def time_of(number: int) -> int | None:
        found = read_changelog_if_present(handle.storage, handle.layout, number)
        return None if found is None else found.time_millis

    return count_overdue_changelogs(ids, newest, time_of, retention)


def _numbers(
    ids: Sequence[int], overdue: int, guard: Guard | None, *, is_held: bool
) -> OverdueNumbers:
    expirable = 0 if is_held else overdue
    if guard is not None:
        expirable = min(expirable, sum(number < guard.next_snapshot for number in ids))
    return OverdueNumbers(
        count=len(ids),
        overdue=overdue,
        expirable=expirable,
        first_left=ids[expirable] if expirable < len(ids) else 0,
        first_kept=ids[overdue] if overdue < len(ids) else 0,
    )


def _share(overdue: int, count: int) -> float:
    if overdue <= _TOLERATED or count <= _TOLERATED_PART * (count - overdue):
        return 0.0
    return overdue / count
