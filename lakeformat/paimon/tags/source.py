# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshot for a new tag, a branch or a rollback, and checks that it is not deleted
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakeformat.errors import CommitConflictError, InvalidRequestError, NotFoundError
from lakeformat.paimon.commit.same_table import require_there
from lakeformat.paimon.deletion import refuse_if_expiring
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import Tag, read_tag, read_tag_if_present, read_tags
from lakeformat.paimon.read.time_travel import watermark_text
from lakeformat.paimon.snapshot_positions import (
    require_number,
    require_same_snapshot,
    snapshot_number,
)
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.position import AnyPosition

__all__ = ["Origin", "find_origin"]

_NO_WATERMARK = -(2**63)


@dataclass(frozen=True, slots=True)
class Origin:
    """A snapshot, and the tag that keeps it; ``tag`` is None if the snapshot's own file exists."""

    snapshot: Snapshot
    tag: str | None = None

    def require_kept(self, handle: TableHandle, what: str) -> None:
        """Raise CommitConflictError if the snapshot was deleted, or is being deleted.

        Call this method after writing ``what``, such as a new tag or branch. An expiry first
        announces the snapshots to delete, and then looks for new tags and branches. A deletion of a
        tag first deletes the tag file, and then looks for new tags and branches. So either the
        deletion finds the new tag or branch, or this check finds the deletion.
        """
        storage, layout, number = handle.storage, handle.layout, self.snapshot.id
        if self.tag is None:
            refuse_if_expiring(handle, number, what)
            if read_snapshot_if_present(storage, layout, number) == self.snapshot:
                return
            gone = f"snapshot {number} of {handle.uri} was rolled back"
        else:
            tag = read_tag_if_present(storage, layout, self.tag)
            if tag is not None and tag.snapshot == self.snapshot:
                return
            gone = f"tag {self.tag!r} of {handle.uri} was deleted or replaced"
        raise CommitConflictError(
            f"{gone} meanwhile, so {what} was cancelled: choose a snapshot or tag that still exists"
        )


def find_origin(
    handle: TableHandle,
    *,
    snapshot: AnyPosition | None = None,
    tag: str | None = None,
    at_or_after: Moment | None = None,
    watermark: int | None = None,
) -> Origin:
    """Return the snapshot that the arguments choose; the newest if no argument is given.

    Raise InvalidRequestError for more than one argument, and NotFoundError if there is no such
    snapshot.
    """
    all_of = {"snapshot": snapshot, "tag": tag, "at_or_after": at_or_after, "watermark": watermark}
    given = [f"{name}={value!r}" for name, value in all_of.items() if value is not None]
    if len(given) > 1:
        raise InvalidRequestError(f"pass only one of {', '.join(given)}: each chooses a snapshot")
    if snapshot is not None:
        number = snapshot_number(handle, "'snapshot' must be a snapshot number", snapshot)
        found = _numbered(handle, number)
        require_same_snapshot(handle, snapshot, found.snapshot)
        return found
    if tag is not None:
        return _tagged(handle, tag)
    if at_or_after is not None:
        millis = to_millis(at_or_after)
        return _first(
            handle,
            lambda each: each.time_millis >= millis,
            f"from {moment_text(millis)} or later",
        )
    if watermark is not None:
        require_number("watermark must be a number of milliseconds", watermark)
        return _first(
            handle,
            lambda each: (
                each.watermark not in (None, _NO_WATERMARK) and (each.watermark or 0) >= watermark
            ),
            f"with watermark {watermark} or later",
        )
    return _newest(handle)


def _newest(handle: TableHandle) -> Origin:
    found = latest_snapshot(handle.storage, handle.layout)
    if found is None:
        require_there(handle)
        raise NotFoundError(
            f"{handle.uri} has no snapshot yet to tag or branch from: write rows to it first"
        )
    return Origin(found)


def _numbered(handle: TableHandle, number: int) -> Origin:
    storage, layout = handle.storage, handle.layout
    found = read_snapshot_if_present(storage, layout, number)
    if found is not None:
        return Origin(found)
    for tag in read_tags(storage, layout):
        if tag.snapshot.id == number:
            return Origin(tag.snapshot, tag.name)
    return Origin(
        read_snapshot(storage, layout, number)
    )  # this call raises an error that lists the snapshots


def _tagged(handle: TableHandle, name: str) -> Origin:
    if not isinstance(name, str):
        raise InvalidRequestError(f"tag must be a str, got {name!r}")
    return Origin(read_tag(handle.storage, handle.layout, name).snapshot, name)


def _first(handle: TableHandle, fits: Callable[[Snapshot], bool], what: str) -> Origin:
    """Return the first snapshot for which ``fits`` is True, including snapshots that only a tag
    keeps.

    Raise NotFoundError if no snapshot fits; in its message, ``what`` describes the search.
    """
    found = min(
        (origin for origin in _all(handle) if fits(origin.snapshot)),
        key=lambda origin: (origin.snapshot.id, origin.tag is not None),
        default=None,
    )
    if found is None:
        newest = latest_snapshot(handle.storage, handle.layout)
        there = f"the newest is {newest.id}" if newest else "it has none yet"
        if newest is not None:
            there += f" from {moment_text(newest.time_millis)}, {watermark_text(newest)}"
        raise NotFoundError(f"{handle.uri} has no snapshot {what}; {there}")
    return found


def _all(handle: TableHandle) -> Iterator[Origin]:
    storage, layout = handle.storage, handle.layout
    tags: list[Tag] = read_tags(storage, layout)
    yield from (Origin(tag.snapshot, tag.name) for tag in tags)
    for number in snapshot_ids(storage, layout):
        found = read_snapshot_if_present(storage, layout, number)
        if found is not None:
            yield Origin(found)
