"""Which snapshots and changelogs may go: rules on numbers and times, nothing else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.consumers import Guard
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.read.past_time import PastTime, past_millis
from lakeformat.paimon.read.time_travel import moment_text

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
    """How much stays."""

    retain_max: int
    retain_min: int
    older_than: int
    """Epoch milliseconds: what was in force then, or later, stays if ``retain_max`` lets it."""
    limit: int
    """How many go at most."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The oldest of some numbers that go, and why no more of them do."""

    count: int
    reason: str
    limited: bool = False
    """Whether more could go but for the limit."""


def is_decoupled(options: TableOptions) -> bool:
    """Whether changelogs outlive their snapshots."""
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
    """What the call says, else what the table says; refused where it contradicts itself."""
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
    """Which changelogs stay that outlive their snapshots; only the table says it."""
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
    """As ``changelog_retention``; None where options contradict each other, as expiry will say."""
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
        names = [option if said is None else name for name, option, said in (least, most)]
        todo = "lower the one or raise the other"
        if most[2] is not None and least[2] is None:
            todo = f"say {least[0]}={retain_max}, too, to keep so few"
        raise InvalidRequestError(
            f"{names[0]} is {retain_min} and {names[1]} is {retain_max}: no more can be kept at "
            f"least than at most; {todo}"
        )
    return Retention(retain_max, retain_min, older_than, limit)


def _count(name: str, said: object, otherwise: int) -> int:
    if said is None:
        return otherwise
    if isinstance(said, bool) or not isinstance(said, int) or said < 1:
        why = (
            "leave it out to let go of as many as the table's options say"
            if name == "limit"
            else "the newest snapshot is the table, and never expires"
        )
        raise InvalidRequestError(f"{name} is {said!r}, but must be a whole number from 1: {why}")
    return said


def select_snapshots(
    ids: Sequence[int],
    time_of: Callable[[int], int | None],
    retention: Retention,
    guard: Guard | None = None,
) -> Selection:
    """How many of the oldest snapshots go.

    ``ids`` are all there are, ascending. A snapshot was the table until the next one came, so its
    age is that of the next. ``time_of`` is asked for no more than it takes; None is for one that
    has gone meanwhile.
    """
    highest, reason, limited = _bounds(ids, retention, guard)
    by_count = min(max(len(ids) - retention.retain_max, 0), highest)
    for position in range(by_count, highest):
        follower = time_of(ids[position + 1])
        if follower is not None and follower >= retention.older_than:
            return Selection(
                position,
                f"snapshot {ids[position]} was in force until {moment_text(follower)}, which is "
                f"not before {moment_text(retention.older_than)}",
            )
    return Selection(highest, reason, limited)


def select_changelogs(
    ids: Sequence[int],
    latest_snapshot: int,
    time_of: Callable[[int], int | None],
    retention: Retention,
    guard: Guard | None = None,
) -> Selection:
    """How many of the oldest changelogs go; their own time counts, and the last one stays."""
    highest, reason, limited = _bounds(ids, retention, guard, newest=latest_snapshot)
    if highest >= len(ids):
        highest, reason, limited = max(len(ids) - 1, 0), "the newest changelog stays", False
    lowest = latest_snapshot - retention.retain_max + 1
    by_count = min(sum(1 for number in ids if number < lowest), highest)
    for position in range(by_count, highest):
        time = time_of(ids[position])
        if time is not None and time >= retention.older_than:
            return Selection(
                position,
                f"changelog {ids[position]} is of {moment_text(time)}, which is not before "
                f"{moment_text(retention.older_than)}",
            )
    return Selection(highest, reason, limited)


def count_overdue(
    ids: Sequence[int], time_of: Callable[[int], int | None], retention: Retention
) -> int:
    """Count the oldest snapshots that are beyond their retention, read by a consumer or not.

    The rule of ``select_snapshots`` without its limit. Few times are asked, by a binary search.
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
    """Count changelogs that outlived their snapshots in the same way, by ``select_changelogs``."""
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
    """How many may go at most, whatever their age, and what it is that keeps the others."""
    if newest is None:  # snapshots: those that are there count, gaps do not
        highest = max(len(ids) - retention.retain_min, 0)
    else:
        highest = sum(1 for number in ids if number <= newest - retention.retain_min)
    least = retention.retain_min
    reason = f"the newest {least} stay whatever their age"
    if least == 1:
        reason = "the newest stays whatever its age"
    if guard is not None:
        guarded = sum(1 for number in ids if number < guard.next_snapshot)
        if guarded < highest:
            kept = "snapshots" if newest is None else "changelogs"
            highest, reason = guarded, f"kept {kept} from {guard.next_snapshot} on for {guard.what}"
    limited = retention.limit < highest
    if limited:
        highest = retention.limit
        reason = f"{highest} go at a time: run it again for more, or raise --limit"
    return highest, reason, limited
