"""Which snapshot a new tag or branch is made of, and whether it is still kept by something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lakeformat.errors import CommitConflictError, InvalidRequestError, NotFoundError
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
from lakeformat.paimon.positions import require_number, snapshot_number
from lakeformat.paimon.read.time_travel import Moment, moment_text, to_millis, watermark_text
from lakeformat.tables.position import AnyPosition

__all__ = ["Origin", "find_origin"]

_NO_WATERMARK = -(2**63)


@dataclass(frozen=True, slots=True)
class Origin:
    """A snapshot and what keeps it: its own file or, where that has expired, a tag."""

    snapshot: Snapshot
    tag: str | None = None

    def require_kept(self, handle: TableHandle, what: str) -> None:
        """Raise ``CommitConflictError`` unless that still is so; ``what`` was made of it.

        Whoever makes something new asks this once it is there. Expiry announces what it takes and
        a tag's file goes before anything else of it; both look at everything that is there after
        that. So one of both sides sees the other.
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
            f"{gone} while {what} was made of it, so nothing was made; take another snapshot"
        )


def find_origin(
    handle: TableHandle,
    *,
    snapshot: AnyPosition | None = None,
    tag: str | None = None,
    at_or_after: Moment | None = None,
    watermark: int | None = None,
) -> Origin:
    """The snapshot asked for; the newest one if nobody asks for any."""
    said = {"snapshot": snapshot, "tag": tag, "at_or_after": at_or_after, "watermark": watermark}
    given = [f"{name}={value!r}" for name, value in said.items() if value is not None]
    if len(given) > 1:
        raise InvalidRequestError(f"say {' or '.join(given)}, not both: each names a snapshot")
    if snapshot is not None:
        number = snapshot_number(handle, "a snapshot is named by its number", snapshot)
        return _numbered(handle, number)
    if tag is not None:
        return _tagged(handle, tag)
    if at_or_after is not None:
        millis = to_millis(at_or_after)
        return _first(
            handle,
            lambda each: each.time_millis >= millis,
            f"of {moment_text(millis)} or later",
        )
    if watermark is not None:
        require_number("a watermark is a number of milliseconds", watermark)
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
        raise NotFoundError(
            f"{handle.uri} has no snapshot yet, so there is nothing to give a name: write to it "
            "first"
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
    return Origin(read_snapshot(storage, layout, number))  # raises, and says which there are


def _tagged(handle: TableHandle, name: str) -> Origin:
    if not isinstance(name, str):
        raise InvalidRequestError(f"a tag is named by a text, got {name!r}")
    return Origin(read_tag(handle.storage, handle.layout, name).snapshot, name)


def _first(handle: TableHandle, fits: Callable[[Snapshot], bool], what: str) -> Origin:
    """The first that fits, of snapshots and of tags whose snapshot has expired."""
    found = min(
        (origin for origin in _all(handle) if fits(origin.snapshot)),
        key=lambda origin: (origin.snapshot.id, origin.tag is not None),
        default=None,
    )
    if found is None:
        newest = latest_snapshot(handle.storage, handle.layout)
        there = f"the newest is {newest.id}" if newest else "it has none yet"
        if newest is not None:
            there += f" of {moment_text(newest.time_millis)}, {watermark_text(newest)}"
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
