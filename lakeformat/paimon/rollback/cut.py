# SPDX-License-Identifier: Apache-2.0
"""Rolls back by deleting newer snapshots.

The newest snapshot is deleted first, so that the table always has the state of one of its
snapshots. After a crash, repeat the rollback to continue. Before the deletion, a fence is written:
a file that names the snapshots to be deleted. A concurrent commit on top of one of them fails.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from lakeformat.errors import CommitConflictError, LakeError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.consumer import write_consumer
from lakeformat.paimon.metadata.fence import ABANDONED_MILLIS, remove_old_fences, write_fence
from lakeformat.paimon.metadata.hints import numbered_changelogs, numbered_snapshots
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.metadata.tag import delete_tag, snapshot_content
from lakeformat.paimon.rollback.identity import StartedCut
from lakeformat.paimon.rollback.plan import RollbackPlan, following
from lakeformat.paimon.tags.source import Origin
from lakeformat.paimon.tags.success_file import remove_success_file
from lakeformat.tables.create_once import create_or_find

__all__ = ["cut_history"]

_log = logging.getLogger(__name__)


def cut_history(
    handle: TableHandle, plan: RollbackPlan, cut: StartedCut | None = None
) -> tuple[int, ...]:
    """Delete the snapshots, tags and changelogs of the plan, and set its consumers back.

    Return the numbers of the deleted snapshots. Raise CommitConflictError if the target is being
    deleted, or if the rollback takes so long that the target might expire.
    """
    storage, layout, target = handle.storage, handle.layout, plan.target
    number = target.snapshot.id
    _bring_back(handle, target)
    strays = _strays(handle, number if plan.newest is None else plan.newest)
    began = handle.environment.now_millis()
    with _fence(handle, target, strays, cut):
        _point_hint(handle, number)
        for name in plan.tags:
            delete_tag(storage, layout, name)
            remove_success_file(handle, name)
    gone = _remove_behind(handle, number, strays, began)
    _remove_changelogs(handle, plan.changelogs)
    for consumer in plan.consumers:
        write_consumer(storage, layout, replace(consumer, next_snapshot=number + 1))
    _point_hint(handle, number)
    remove_old_fences(storage, layout, handle.environment.now_millis())
    handle.observe_upkeep()
    deleted = ", ".join(map(str, gone)) or "none"
    _log.info("rolled %s back to snapshot %d; deleted snapshots: %s", handle.uri, number, deleted)
    return tuple(gone)


def _bring_back(handle: TableHandle, target: Origin) -> None:
    """Write the snapshot file of the target if only a tag has the snapshot.

    Call this before any other snapshot is deleted.
    """
    if target.tag is None:
        target.require_kept(handle, "the rollback")
        return
    storage, path = handle.storage, handle.layout.snapshot(target.snapshot.id)
    try:
        content = snapshot_content(storage, handle.layout, target.tag)
    except NotFoundError:
        target.require_kept(handle, "the rollback")
        raise
    create_or_find(storage, path, content)
    try:
        target.require_kept(handle, "the rollback")
    except LakeError:
        storage.delete(path)
        raise
    numbered_snapshots(handle.storage, handle.layout).write_earliest_hint(target.snapshot.id)


@contextmanager
def _fence(
    handle: TableHandle, target: Origin, strays: Sequence[Snapshot], cut: StartedCut | None
) -> Iterator[None]:
    """Write a fence with the snapshots ``strays`` before the ``with`` block runs.

    An expiry announces its snapshots before it looks for fences. So either the expiry finds this
    fence, or the check here finds that the expiry deletes the target.

    The block must not delete snapshots. If the check or the block fails, for example because the
    disk is full, the fence is deleted, because it would block the expiry that frees space. But if
    LATEST already names the target and no snapshot has the next number, the fence is kept, because
    readers then take the target for the newest snapshot.
    """
    if not strays:
        yield
        return
    if cut is None:
        unique = handle.environment.new_id()
        write_fence(handle.storage, handle.layout, unique, strays)
    else:
        unique = cut.fence_off(target.snapshot.id, strays)
    try:
        Origin(target.snapshot).require_kept(handle, "the rollback")
        yield
    except LakeError:
        with suppress(LakeError):
            if numbered_snapshots(handle.storage, handle.layout).latest_id() != target.snapshot.id:
                handle.storage.delete(handle.layout.fence(unique))
        raise


def _remove_behind(
    handle: TableHandle, number: int, strays: Sequence[Snapshot], began: int
) -> list[int]:
    """Delete the snapshots ``strays``, which a fence file already names.

    Return the numbers of all deleted snapshots. Snapshots that were committed meanwhile on top of a
    deleted snapshot are named in another fence file, and are deleted, too. Only commits on top of
    the target ``number`` remain. Raise CommitConflictError if the rollback takes too long.
    """
    storage, layout, gone = handle.storage, handle.layout, list[int]()
    while strays:
        for snapshot in strays:
            _require_awake(handle, number, began)
            storage.delete(layout.snapshot(snapshot.id))
            gone.append(snapshot.id)
        strays = _strays(handle, following(snapshot_ids(storage, layout), number))
        if strays:
            write_fence(storage, layout, handle.environment.new_id(), strays)
    return gone


def _require_awake(handle: TableHandle, number: int, began: int) -> None:
    """Raise CommitConflictError if the rollback has taken too long.

    The limit is half of the time for which an expiry respects the fence.
    """
    if handle.environment.now_millis() - began > ABANDONED_MILLIS // 2:
        raise CommitConflictError(
            f"the rollback of {handle.uri} to snapshot {number} took so long that its target may "
            "have expired meanwhile: check that the snapshot exists, and repeat the rollback"
        )


def _strays(handle: TableHandle, kept: int) -> list[Snapshot]:
    """Return the snapshots to delete: those after ``kept``, newest first."""
    behind = [each for each in snapshot_ids(handle.storage, handle.layout) if each > kept]
    found = (read_snapshot_if_present(handle.storage, handle.layout, n) for n in behind[::-1])
    return [snapshot for snapshot in found if snapshot is not None]


def _remove_changelogs(handle: TableHandle, behind: Sequence[int]) -> None:
    if not behind:
        return
    storage, layout = handle.storage, handle.layout
    files = numbered_changelogs(storage, layout)
    left = [each for each in files.ids() if each not in behind]
    if left:
        files.write_latest_hint(max(left))
    for number in sorted(behind, reverse=True):
        storage.delete(layout.changelog(number))
    if not left:
        for hint in ("LATEST", "EARLIEST"):
            storage.delete(f"{layout.changelog_directory}/{hint}")


def _point_hint(handle: TableHandle, number: int) -> None:
    """Set LATEST to ``number``: other engines trust this hint if no snapshot has the next
    number.
    """
    numbered_snapshots(handle.storage, handle.layout).write_latest_hint(number)
