# SPDX-License-Identifier: Apache-2.0
"""Time travel: finds a snapshot by number, tag, time or watermark."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from functools import cache

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import read_tag
from lakeformat.paimon.snapshot_positions import (
    require_number,
    require_same_snapshot,
    snapshot_number,
)
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.position import AnyPosition

__all__ = [
    "find_snapshot",
    "newest_at",
    "newest_compacted",
    "watermark_text",
]

_BEFORE_ALL = -(1 << 63)
_LAST_IDENTIFIER = (1 << 63) - 1
"""The commit identifier of commits that do not belong to a stream."""


def find_snapshot(
    handle: TableHandle,
    *,
    snapshot: AnyPosition | None = None,
    tag: str | None = None,
    as_of: Moment | None = None,
    watermark: int | None = None,
    newest: bool = False,
) -> Snapshot | None:
    """Return the snapshot chosen by the one argument that is given.

    Without an argument or with only ``newest``, return None, which stands for the newest snapshot.
    Raise InvalidRequestError if several arguments are given. Raise NotFoundError if no snapshot
    fits the argument.
    """
    given = {"snapshot": snapshot, "tag": tag, "as_of": as_of, "watermark": watermark}
    _require_one({**given, "newest": newest or None})
    if snapshot is not None:
        number = snapshot_number(handle, "'snapshot' must be a snapshot number", snapshot)
        found = read_snapshot(handle.storage, handle.layout, number)
        require_same_snapshot(handle, snapshot, found)
        return found
    if tag is not None:
        if not isinstance(tag, str):
            raise InvalidRequestError(f"tag must be a str, got {tag!r}")
        return read_tag(handle.storage, handle.layout, tag).snapshot
    if as_of is not None:
        return _as_of(handle, as_of)
    return None if watermark is None else _of_watermark(handle, watermark)


def newest_at(handle: TableHandle, millis: int) -> Snapshot | None:
    """Return the newest snapshot committed at ``millis`` or before; None if there is none."""
    ids, read = _snapshots(handle)
    position = bisect_right(ids, millis, key=lambda number: _time_of(read(number)))
    return None if position == 0 else read(ids[position - 1])


def newest_compacted(handle: TableHandle) -> Snapshot | None:
    """Return the newest COMPACT snapshot; None if there is none.

    With ``full-compaction.delta-commits``, only two kinds of COMPACT snapshots count: those of
    batch jobs, and those whose commit identifier is a multiple of the option's value. Paimon's Java
    reader finds full compactions in this way.
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


def watermark_text(snapshot: Snapshot) -> str:
    """Return "with watermark <number>" or "without watermark", for messages."""
    found = snapshot.watermark
    return "without watermark" if found is None else f"with watermark {found}"


def _require_one(arguments: Mapping[str, object]) -> None:
    given = [f"{name}={value!r}" for name, value in arguments.items() if value is not None]
    if len(given) > 1:
        raise InvalidRequestError(f"pass only one of {', '.join(given)}: each chooses a snapshot")


def _as_of(handle: TableHandle, as_of: Moment) -> Snapshot:
    millis = to_millis(as_of)
    found = newest_at(handle, millis)
    if found is None:
        raise NotFoundError(
            f"{handle.uri} has no snapshot from {moment_text(millis)} or before; "
            + _there(handle, lambda s: f"snapshot {s.id} from {moment_text(s.time_millis)}")
        )
    return found


def _of_watermark(handle: TableHandle, watermark: int) -> Snapshot:
    """Return the oldest snapshot whose watermark is at least ``watermark``.

    The search assumes that watermarks never decrease; a rollback to an earlier snapshot may break
    that. Raise NotFoundError if no snapshot is found.
    """
    require_number("watermark must be a number of milliseconds", watermark)
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
    storage, layout = handle.storage, handle.layout
    return snapshot_ids(storage, layout), cache(
        lambda number: read_snapshot_if_present(storage, layout, number)
    )


def _time_of(snapshot: Snapshot | None) -> int:
    """Return the commit time in epoch milliseconds.

    For an expired snapshot, return a time before all other times.
    """
    return _BEFORE_ALL if snapshot is None else snapshot.time_millis


def _watermark_of(snapshot: Snapshot | None) -> int:
    return _BEFORE_ALL if snapshot is None or snapshot.watermark is None else snapshot.watermark


def _there(handle: TableHandle, show: Callable[[Snapshot], str]) -> str:
    """Return the end of an error message, which shows the oldest and the newest snapshot."""
    ids, read = _snapshots(handle)
    there = [found for found in map(read, ids[:1] + ids[-1:]) if found is not None]
    if not there:
        return "it has no snapshot yet"
    if len(ids) == 1:
        return f"the only one is {show(there[0])}"
    return f"the oldest is {show(there[0])}, the newest is {show(there[-1])}"
