"""Looking again where what leads to files has changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lakeformat.errors import CorruptTableError, LakeError, NotFoundError, SnapshotExpiredError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.branch_directory import branches

__all__ = ["changed_too_often", "look_again"]

T = TypeVar("T")
_LOOKS = 20
"""So often what leads to files may change while it is looked at."""


def look_again(handle: TableHandle, look: Callable[[], T]) -> T:
    """Return what ``look`` returns; it begins anew where snapshots, tags or branches changed.

    What leads to files may go while it is read, as a tag that is deleted, and takes them with it:
    that is no damage. A file that is missing while nothing changes is.
    """
    before: object = None
    for looks in range(1, _LOOKS + 1):
        try:
            return look()
        except (CorruptTableError, NotFoundError) as missing:
            now = _what_leads(handle)
            if now == before:
                raise
            if looks == _LOOKS:
                raise changed_too_often(handle, _LOOKS, missing) from missing
            before = now
    raise AssertionError("the last look returns or raises")


def changed_too_often(handle: TableHandle, times: int, met: LakeError) -> SnapshotExpiredError:
    """The error of what has begun anew so many times."""
    return SnapshotExpiredError(
        f"snapshots, tags or branches of {handle.uri} changed {times} times while they were read: "
        f"repeat it, or let fewer expiries, rollbacks and deletions run at a time. The last: {met}"
    )


def _what_leads(handle: TableHandle) -> object:
    """Every snapshot, tag and changelog of every branch, and when each was written."""
    storage, layout = handle.storage, handle.layout
    names = [MAIN_BRANCH, *(branch.name for branch in branches(storage, layout))]
    places = [layout.on_branch(name) for name in names]
    return {
        (info.path, info.size, info.modified_millis)
        for place in places
        for directory in (place.snapshot_directory, place.tag_directory, place.changelog_directory)
        for info in storage.list(directory)
        if not info.name.startswith(".") and info.name not in ("LATEST", "EARLIEST")
    }
