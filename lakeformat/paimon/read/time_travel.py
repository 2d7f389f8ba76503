"""Which snapshot is meant: by number, tag, time or watermark."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeAlias

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import read_tag

__all__ = [
    "Moment",
    "find_snapshot",
    "iso_text",
    "moment_text",
    "newest_at",
    "newest_compacted",
    "require_number",
    "to_millis",
    "watermark_text",
]

Moment: TypeAlias = datetime | str | int
"""A point in time: a datetime or ISO text, in UTC unless it says a zone, or epoch milliseconds."""

_BEFORE_ALL = -(1 << 63)
_LAST_IDENTIFIER = (1 << 63) - 1
"""Of commits that are no part of a stream."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find_snapshot(
    handle: TableHandle,
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    as_of: Moment | None = None,
    watermark: int | None = None,
) -> Snapshot | None:
    """The snapshot asked for; None when nobody asks for one, an error when two are asked for."""
    said = {"snapshot": snapshot, "tag": tag, "as_of": as_of, "watermark": watermark}
    _require_one(said)
    if snapshot is not None:
        require_number("a snapshot is named by its number", snapshot)
        return read_snapshot(handle.storage, handle.layout, snapshot)
    if tag is not None:
        if not isinstance(tag, str):
            raise InvalidRequestError(f"a tag is named by a text, got {tag!r}")
        return read_tag(handle.storage, handle.layout, tag).snapshot
    if as_of is not None:
        return _as_of(handle, as_of)
    return None if watermark is None else _of_watermark(handle, watermark)


def newest_at(handle: TableHandle, millis: int) -> Snapshot | None:
    """The newest snapshot committed at that time or before; None if none is left."""
    ids, read = _snapshots(handle)
    position = bisect_right(ids, millis, key=lambda number: _time_of(read(number)))
    return None if position == 0 else read(ids[position - 1])


def newest_compacted(handle: TableHandle) -> Snapshot | None:
    """The newest snapshot of a compaction; None if none is left.

    Where full compactions come every so many commits, the others do not count, as in Java.
    """
    every = handle.options.full_compaction_delta_commits or 1
    ids, read = _snapshots(handle)
    for number in reversed(ids):
        found = read(number)
        if found is not None and found.commit_kind is CommitKind.COMPACT:
            identifier = found.commit_identifier
            if identifier % every == 0 or identifier == _LAST_IDENTIFIER:
                return found
    return None


def to_millis(moment: Moment) -> int:
    """Epoch milliseconds of a point in time, rounded down."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            raise _no_moment(moment) from None
    if isinstance(moment, datetime):
        if moment != moment:  # what pandas has where a time is missing
            raise _no_moment(moment)
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(moment, bool) or not isinstance(moment, int):
        raise _no_moment(moment)
    return moment


def moment_text(millis: int) -> str:
    """A point in time for people."""
    try:
        shown = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis}ms"
    return shown.replace(tzinfo=None).isoformat(" ", "milliseconds") + "Z"


def iso_text(millis: int) -> str:
    """A point in time for programs, as system tables have it: ISO 8601 in UTC without a zone."""
    return moment_text(millis).removesuffix("Z").replace(" ", "T")


def watermark_text(snapshot: Snapshot) -> str:
    """The watermark of a snapshot for people."""
    found = snapshot.watermark
    return "without watermark" if found is None else f"with watermark {found}"


def _require_one(said: Mapping[str, object]) -> None:
    given = [f"{name}={value!r}" for name, value in said.items() if value is not None]
    if len(given) > 1:
        raise InvalidRequestError(f"say {' or '.join(given)}, not both: each names a snapshot")


def require_number(what: str, value: object) -> None:
    """Raise if it is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{what}, got {value!r}")


def _as_of(handle: TableHandle, as_of: Moment) -> Snapshot:
    millis = to_millis(as_of)
    found = newest_at(handle, millis)
    if found is None:
        raise NotFoundError(
            f"{handle.uri} has no snapshot of {moment_text(millis)} or before; "
            + _there(handle, lambda s: f"snapshot {s.id} of {moment_text(s.time_millis)}")
        )
    return found


def _of_watermark(handle: TableHandle, watermark: int) -> Snapshot:
    """The oldest snapshot whose data is complete up to the watermark, which never falls."""
    require_number("a watermark is a number of milliseconds", watermark)
    ids, read = _snapshots(handle)
    position = bisect_left(ids, watermark, key=lambda number: _watermark_of(read(number)))
    found = read(ids[position]) if position < len(ids) else None
    if found is None:
        raise NotFoundError(
            f"{handle.uri} has no snapshot with watermark {watermark} or later; "
            + _there(handle, lambda s: f"snapshot {s.id} {watermark_text(s)}")
        )
    return found


def _snapshots(handle: TableHandle) -> tuple[list[int], Callable[[int], Snapshot | None]]:
    """The numbers there are, and a way to read those that are looked at, each once."""
    storage, layout = handle.storage, handle.layout
    return snapshot_ids(storage, layout), cache(
        lambda number: read_snapshot_if_present(storage, layout, number)
    )


def _time_of(snapshot: Snapshot | None) -> int:
    """One that has expired since is older than all that have not."""
    return _BEFORE_ALL if snapshot is None else snapshot.time_millis


def _watermark_of(snapshot: Snapshot | None) -> int:
    return _BEFORE_ALL if snapshot is None or snapshot.watermark is None else snapshot.watermark


def _there(handle: TableHandle, show: Callable[[Snapshot], str]) -> str:
    """The first and last snapshot, as the error has to show them."""
    ids, read = _snapshots(handle)
    there = [found for found in map(read, ids[:1] + ids[-1:]) if found is not None]
    if not there:
        return "it has no snapshot yet"
    return f"the oldest is {show(there[0])}, the newest {show(there[-1])}"


def _no_moment(moment: Any) -> InvalidRequestError:
    return InvalidRequestError(
        "a time is a datetime, a text such as '2024-01-31 10:00:00' (UTC unless it says a zone) "
        f"or a number of milliseconds since 1970, got {moment!r}"
    )
