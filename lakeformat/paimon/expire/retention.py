# SPDX-License-Identifier: Apache-2.0
"""The rules by which an expiry selects snapshots and changelogs: by their number and age."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.consumers import Guard
from lakeformat.paimon.options import TableOptions
from lakeformat.tables.moment import moment_text
from lakeformat.tables.past_time import PastTime, past_millis

__all__ = [
    "Retention",
    "Selection",
    "changelog_retention",
    "changelog_rules",
    "count_overdue",
    "count_overdue_changelogs",
    "is_decoupled",
    "select_changelogs",
    "select_snapshots",
    "snapshot_retention",
]


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of an expiry of snapshots or of changelogs."""

    retain_max: int
    retain_min: int
    older_than: int
    """A time in epoch milliseconds.

    Changelogs from this time or later are kept, and so are snapshots that were the newest at this
    time or later. If more than ``retain_max`` exist, the oldest ones expire nevertheless.
    """
    limit: int
    """The largest number of snapshots or changelogs that one run expires."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The number of the snapshots or changelogs to expire, and the reason why no more expire."""

    count: int
    reason: str
    limited: bool = False
    """True if ``Retention.limit`` ended the selection."""


def is_decoupled(options: TableOptions) -> bool:
    """Return True if an option keeps changelogs longer than their snapshots."""
    longest, least = options.changelog_num_retained_max, options.changelog_num_retained_min
    time = options.changelog_time_retained_millis
    return (
        (longest is not None and longest > options.snapshot_num_retained_max)
        or (least is not None and least > options.snapshot_num_retained_min)
        or (time is not None and time > options.snapshot_time_retained_millis)
    )


def snapshot_retention(
    options: TableOptions,
    now_millis: int,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: PastTime | None = None,
    limit: int | None = None,
) -> Retention:
    """Return the limits for snapshots; a table option replaces each argument that is None.

    Raise InvalidRequestError for a number below 1, or for a minimum above the maximum.
    """
    bound = now_millis - options.snapshot_time_retained_millis
    if older_than is not None:
        bound = past_millis("older_than", older_than, now_millis)
    return _checked(
        _count("retain_max", retain_max, options.snapshot_num_retained_max),
        _count("retain_min", retain_min, options.snapshot_num_retained_min),
        bound,
        _count("limit", limit, options.snapshot_expire_limit),
        ("retain_max", "snapshot.num-retained.max", retain_max),
        ("retain_min", "snapshot.num-retained.min", retain_min),
    )


def changelog_retention(
    options: TableOptions, now_millis: int, limit: int | None = None
) -> Retention:
    """Return the limits for changelogs that outlive their snapshots.

    Table options set all of them except ``limit``. Raise InvalidRequestError for a minimum above
    the maximum.
    """
    most, least = options.changelog_num_retained_max, options.changelog_num_retained_min
    time = options.changelog_time_retained_millis
    return _checked(
        options.snapshot_num_retained_max if most is None else most,
        options.snapshot_num_retained_min if least is None else least,
        now_millis - (options.snapshot_time_retained_millis if time is None else time),
        _count("limit", limit, options.snapshot_expire_limit),
        ("retain_max", "changelog.num-retained.max", None),
        ("retain_min", "changelog.num-retained.min", None),
    )


def changelog_rules(options: TableOptions, now_millis: int) -> Retention | None:
    """Return ``changelog_retention``; None if the options contradict each other."""
    try:
        return changelog_retention(options, now_millis)
    except InvalidRequestError:
        return None


def _checked(
    retain_max: int,
    retain_min: int,
    older_than: int,
    limit: int,
    most: tuple[str, str, int | None],
    least: tuple[str, str, int | None],
) -> Retention:
    if retain_min > retain_max:
        names = [option if value is None else name for name, option, value in (least, most)]
        todo = "lower the first or raise the second"
        if most[2] is not None and least[2] is None:
            todo = f"also pass {least[0]}={retain_max}"
        raise InvalidRequestError(
            f"{names[0]} is {retain_min} and {names[1]} is {retain_max}, but the minimum must not "
            f"exceed the maximum: {todo}"
        )
    return Retention(retain_max, retain_min, older_than, limit)


def _count(name: str, value: object, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        why = (
            "leave it out for the limit of the table options"
            if name == "limit"
            else "the newest snapshot never expires"
        )
        raise InvalidRequestError(f"{name} is {value!r}, but must be 1 or more: {why}")
    return value


def select_snapshots(
    ids: Sequence[int],
    time_of: Callable[[int], int | None],
    retention: Retention,
    guard: Guard | None = None,
) -> Selection:
    """Return how many of the oldest snapshots expire, and the reason why no more expire.

    Snapshots that the consumer ``guard`` has not read are kept. ``ids`` are the ids of all
    snapshots, ascending. A snapshot was the newest until the next one was committed, so its age
    counts from that time. ``time_of`` returns the commit time of an id in epoch milliseconds, or
    None if the snapshot has expired meanwhile.
    """
    highest, reason, limited = _bounds(ids, retention, guard)
    by_count = min(max(len(ids) - retention.retain_max, 0), highest)
    for position in range(by_count, highest):
        follower = time_of(ids[position + 1])
        if follower is not None and follower >= retention.older_than:
            return Selection(
                position,
                f"snapshot {ids[position]} was the newest until {moment_text(follower)}, so it "
                f"is not older than the age limit {moment_text(retention.older_than)}",
            )
    return Selection(highest, reason, limited)


def select_changelogs(
    ids: Sequence[int],
    latest_snapshot: int,
    time_of: Callable[[int], int | None],
    retention: Retention,
    guard: Guard | None = None,
) -> Selection:
    """Return how many of the oldest changelogs expire, and the reason why no more expire.

    Changelogs that the consumer ``guard`` has not read are kept, and so is the newest changelog.
    The age of a changelog counts from its own commit. ``ids`` are the ids of all changelogs,
    ascending. ``time_of`` returns the commit time of a changelog in epoch milliseconds, or None if
    the changelog has expired meanwhile. ``retain_min`` and ``retain_max`` count ids down from
    ``latest_snapshot``, the id of the newest snapshot.
    """
    highest, reason, limited = _bounds(ids, retention, guard, newest=latest_snapshot)
    if highest >= len(ids):
        highest, reason, limited = (
            max(len(ids) - 1, 0),
            "the newest changelog is always kept",
            False,
        )
    lowest = latest_snapshot - retention.retain_max + 1
    by_count = min(sum(1 for number in ids if number < lowest), highest)
    for position in range(by_count, highest):
        time = time_of(ids[position])
        if time is not None and time >= retention.older_than:
            return Selection(
                position,
                f"changelog {ids[position]} is from {moment_text(time)}, at or after the age limit "
                f"{moment_text(retention.older_than)}",
            )
    return Selection(highest, reason, limited)


def count_overdue(
    ids: Sequence[int], time_of: Callable[[int], int | None], retention: Retention
) -> int:
    """Return how many snapshots ``retention`` would expire without its ``limit`` and without
    consumers.

    The result is found by a binary search, which calls ``time_of`` rarely.
    """
    highest, _, _ = _bounds(ids, _unlimited(retention, ids), None)
    by_count = min(max(len(ids) - retention.retain_max, 0), highest)

    def is_kept(position: int) -> bool:
        follower = time_of(ids[position + 1])
        return follower is not None and follower >= retention.older_than

    return bisect_left(range(highest), True, lo=by_count, key=is_kept)


def count_overdue_changelogs(
    ids: Sequence[int],
    latest_snapshot: int,
    time_of: Callable[[int], int | None],
    retention: Retention,
) -> int:
    """Return how many changelogs ``retention`` would expire without its ``limit`` and without
    consumers.
    """
    highest, _, _ = _bounds(ids, _unlimited(retention, ids), None, newest=latest_snapshot)
    highest = min(highest, max(len(ids) - 1, 0))
    lowest = latest_snapshot - retention.retain_max + 1
    by_count = min(sum(1 for number in ids if number < lowest), highest)

    def is_kept(position: int) -> bool:
        time = time_of(ids[position])
        return time is not None and time >= retention.older_than

    return bisect_left(range(highest), True, lo=by_count, key=is_kept)


def _unlimited(retention: Retention, ids: Sequence[int]) -> Retention:
    return replace(retention, limit=len(ids))


def _bounds(
    ids: Sequence[int], retention: Retention, guard: Guard | None, newest: int | None = None
) -> tuple[int, str, bool]:
    """Return the number of ``ids`` that may expire, and the reason why no more may expire.

    The third value is True if ``limit`` is this reason. Ages are ignored. ``newest`` is the id of
    the newest snapshot if ``ids`` are those of changelogs, else None.
    """
    if newest is None:  # for snapshots, count the existing ones: numbers may have gaps
        highest = max(len(ids) - retention.retain_min, 0)
    else:
        highest = sum(1 for number in ids if number <= newest - retention.retain_min)
    least = retention.retain_min
    of = "" if newest is None else "the changelogs of "
    reason = f"{of}the newest {least} snapshots are always kept"
    if least == 1:
        of = "" if newest is None else "the changelog of "
        reason = f"{of}the newest snapshot is always kept"
    if guard is not None:
        guarded = sum(1 for number in ids if number < guard.next_snapshot)
        if guarded < highest:
            kept = "snapshots" if newest is None else "changelogs"
            highest, reason = guarded, f"kept {kept} from {guard.next_snapshot} on for {guard.what}"
    limited = retention.limit < highest
    if limited:
        highest = retention.limit
        reason = f"the limit is {highest}: run the expiry again, or raise limit (--limit)"
    return highest, reason, limited
