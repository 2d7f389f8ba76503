# SPDX-License-Identifier: Apache-2.0
"""Publishes a snapshot, and checks that it follows the snapshot on which it was built."""

from __future__ import annotations

from lakeformat.errors import CommitOutcomeUnknownError, CorruptTableError
from lakeformat.paimon.commit.ancestry import is_built_on
from lakeformat.paimon.commit.same_table import is_same_table
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH
from lakeformat.paimon.metadata.fence import is_fenced, write_fence
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.create_once import PublishOutcome, try_to_create

__all__ = ["branch_changed", "check_place", "is_moved_branch", "or_renamed", "publish"]


def publish(handle: TableHandle, snapshot: Snapshot) -> PublishOutcome:
    """Publish a snapshot, and return the outcome; after any error, nothing was published."""
    path = handle.layout.snapshot(snapshot.id)
    return try_to_create(handle.storage, path, snapshot.to_json())


def check_place(
    handle: TableHandle, snapshot: Snapshot, changes: SnapshotDelta, head: Snapshot | None
) -> PublishOutcome:
    """Return COMMITTED if ``snapshot``, just published, is in the history; else LOST or UNKNOWN.

    ``head`` is the snapshot on which ``snapshot`` was built.

    If the branch has the mark of unfinished work, the result is UNKNOWN: a rename may have copied
    ``snapshot`` to the new name of the branch. Without the mark, the result is COMMITTED if
    ``head`` still exists, because snapshots expire oldest first. If a rename writes the mark later,
    the rename lists the files again, and gives up if it has not copied ``snapshot``.

    The result is LOST if a rollback has removed ``head``. It is also LOST if a slow writer used a
    number that had already expired: no reader finds a snapshot there. In both cases the result is
    COMMITTED instead if the next snapshot was built on ``snapshot``. On main, the result is also
    LOST if the path no longer has the opened table. The file of a lost snapshot is deleted, but
    never another writer's snapshot with the same number.

    The result is UNKNOWN if nothing shows on which snapshot the next one was built. It is also
    UNKNOWN if the branch was renamed or deleted.
    """
    storage, layout = handle.storage, handle.layout
    if _is_unfinished(handle):
        return PublishOutcome.UNKNOWN
    before = None if head is None else _read_or_damaged(handle, head)
    if head is not None and before == head:
        return PublishOutcome.COMMITTED
    if not is_same_table(handle):
        return _take_back_from_old_place(handle, snapshot)
    if head is None:
        return PublishOutcome.COMMITTED
    there = snapshot_ids(storage, layout)
    is_rolled_back = before is not None or is_fenced(storage, layout, head)
    if max(there, default=snapshot.id) <= snapshot.id and not is_rolled_back:
        return PublishOutcome.COMMITTED  # the predecessor has expired since
    if snapshot.id + 1 not in there and _is_there(handle, snapshot):
        if is_rolled_back:  # another commit may be building on this snapshot
            write_fence(storage, layout, handle.environment.new_id(), [snapshot])
        return _take_back(handle, snapshot)
    following = min((number for number in there if number > snapshot.id), default=None)
    if following is None:
        return PublishOutcome.LOST  # the rollback has already removed this snapshot
    built_on = is_built_on(handle, following, snapshot, changes)
    if built_on is False:  # the snapshot with the next number is older: no reader has seen this one
        return _take_back(handle, snapshot)
    return PublishOutcome.COMMITTED if built_on else PublishOutcome.UNKNOWN


def is_moved_branch(handle: TableHandle) -> bool:
    """Return True if the branch was renamed or deleted, or if a call that does this is unfinished.

    Return False for main. A renaming deletes its mark last, so the mark is read first.
    """
    is_branch = handle.layout.branch != MAIN_BRANCH
    return is_branch and (_is_unfinished(handle) or not is_same_table(handle))


def _is_unfinished(handle: TableHandle) -> bool:
    """Return True if the branch is being created, renamed or deleted; main never is."""
    name = handle.layout.branch
    return name != MAIN_BRANCH and handle.storage.exists(handle.layout.unfinished_branch(name))


def branch_changed(handle: TableHandle, commit: CommitId) -> CommitOutcomeUnknownError:
    """Return the error for a commit to a branch that is renamed or deleted meanwhile."""
    return CommitOutcomeUnknownError(
        f"branch {handle.layout.branch!r} of {handle.uri} was renamed or deleted during the "
        f"commit {commit}, or a call that does this has not finished. The commit may be "
        "published. Open the branch under its new name, or under the old name if it was not "
        f"renamed, and retry with {commit}: if it was published, the retry changes nothing. "
        "No file was removed"
    )


def or_renamed(handle: TableHandle) -> str:
    """Return a note for the message of an UNKNOWN result: the branch may have a new name."""
    name = handle.layout.branch
    if name == MAIN_BRANCH:
        return ""
    return f" (or branch {name!r} was renamed meanwhile: then open it under its new name)"


def _take_back(handle: TableHandle, snapshot: Snapshot) -> PublishOutcome:
    """Delete the file of ``snapshot`` if it exists, and return LOST."""
    if _is_there(handle, snapshot):
        handle.storage.delete(handle.layout.snapshot(snapshot.id))
    return PublishOutcome.LOST


def _take_back_from_old_place(handle: TableHandle, snapshot: Snapshot) -> PublishOutcome:
    """Delete ``snapshot`` from a path that no longer has the opened table; return LOST or UNKNOWN.

    A rename may have moved ``snapshot`` to the new name of the branch. The manifests and data files
    of ``snapshot`` keep their paths. LOST would allow the caller to delete these files, so for a
    branch the result is UNKNOWN.
    """
    lost = _take_back(handle, snapshot)
    return lost if handle.layout.branch == MAIN_BRANCH else PublishOutcome.UNKNOWN


def _is_there(handle: TableHandle, snapshot: Snapshot) -> bool:
    """Return True if the file with the number of ``snapshot`` has this snapshot.

    After a rollback, or in a table that was created again, it may have another writer's snapshot.
    """
    found = read_snapshot_if_present(handle.storage, handle.layout, snapshot.id)
    return found is not None and found.identity == snapshot.identity


def _read_or_damaged(handle: TableHandle, head: Snapshot) -> Snapshot | None:
    """Return the snapshot that now has the number of ``head``, or None if it is missing.

    If the file is unreadable, return ``head``.
    """
    try:
        return read_snapshot_if_present(handle.storage, handle.layout, head.id)
    except CorruptTableError:
        return head
