# SPDX-License-Identifier: Apache-2.0
"""Retries reads that fail because snapshots, tags or branches changed meanwhile."""

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
"""The number of times that a read is tried while snapshots, tags or branches change."""


def look_again(handle: TableHandle, look: Callable[[], T]) -> T:
    """Return the result of ``look``; retry it while snapshots, tags or branches change.

    A file may disappear while it is read because its tag or snapshot is deleted. If nothing
    changes, a missing file is damage: the CorruptTableError or NotFoundError of ``look`` is raised.
    Raise SnapshotExpiredError if the table changes during each of 20 attempts.
    """
    before: object = None
    for looks in range(1, _LOOKS + 1):
        try:
            return look()
        except (CorruptTableError, NotFoundError) as missing:
            now = _referrers(handle)
            if now == before:
                raise
            if looks == _LOOKS:
                raise changed_too_often(handle, _LOOKS, missing) from missing
            before = now
    raise AssertionError("the last attempt returns or raises")


def changed_too_often(handle: TableHandle, times: int, met: LakeError) -> SnapshotExpiredError:
    """Return the error for reads that failed ``times`` times; ``met`` is the last of their
    errors.
    """
    return SnapshotExpiredError(
        f"snapshots, tags or branches of {handle.uri} changed {times} times while they were read: "
        "try again, or run fewer expiries, rollbacks and deletions at the same time. Last error: "
        f"{met}"
    )


def _referrers(handle: TableHandle) -> object:
    """Return path, size and time of every snapshot, tag and changelog file of every branch."""
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
