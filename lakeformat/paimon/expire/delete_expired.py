# SPDX-License-Identifier: Apache-2.0
"""Deletes expired snapshots round by round: makes them unreachable, then deletes their files.

In a round, a file first announces the snapshots. Then they are made unreachable, and then their
files are removed. The announcement is deleted last, so the next run can finish an interrupted
round.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakeformat.errors import LakeError
from lakeformat.paimon.deletion import (
    Deleter,
    FileClass,
    Removal,
    bucket_directories,
    remove_empty_directories,
)
from lakeformat.paimon.expire.plan import Plan
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.changelog_directory import write_changelog
from lakeformat.paimon.metadata.expired_changes import has_expired_changes
from lakeformat.paimon.metadata.hints import NumberedFiles, numbered_changelogs, numbered_snapshots
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.types.sentence import sentence

__all__ = ["Account", "hide_changelogs", "hide_snapshots", "remove_files"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Account:
    """Collects the results of all rounds of one expiry."""

    deleter: Deleter
    dry_run: bool
    snapshots: list[int] = field(default_factory=list)
    changelogs: list[int] = field(default_factory=list)
    finished: int = 0
    directories: int = 0
    spared: int = 0
    notes: list[str] = field(default_factory=list)


def hide_snapshots(
    handle: TableHandle,
    account: Account,
    snapshots: Sequence[Snapshot],
    end: int,
    *,
    keeps_changelogs: bool,
) -> None:
    """Delete the snapshot files, oldest first, so that the ids of the kept snapshots have no gap.

    ``end`` is the id of the oldest kept snapshot. With ``keeps_changelogs``, write a changelog file
    for each snapshot whose changes still exist, so that the changes remain readable.
    """
    layout, storage = handle.layout, handle.storage
    for position, snapshot in enumerate(snapshots):
        has_changes = position > 0 or not has_expired_changes(storage, layout, snapshot)
        if keeps_changelogs and has_changes and not account.dry_run:
            write_changelog(storage, layout, snapshot)
        _hide(handle, account, layout.snapshot(snapshot.id), "snapshot", snapshot)
        account.snapshots.append(snapshot.id)
    _point_at(handle, account, numbered_snapshots(storage, layout), end)


def hide_changelogs(
    handle: TableHandle, account: Account, changelogs: Sequence[Snapshot], end: int
) -> None:
    """Delete the changelog files, oldest first.

    ``end`` is the id of the first kept changelog after them. If there is none, it is the id after
    the last deleted changelog.
    """
    layout, storage = handle.layout, handle.storage
    for changelog in changelogs:
        _hide(handle, account, layout.changelog(changelog.id), "changelog", changelog)
        account.changelogs.append(changelog.id)
    _point_at(handle, account, numbered_changelogs(storage, layout), end)


def remove_files(handle: TableHandle, account: Account, plan: Plan) -> bool:
    """Remove the files of a plan, one step after the other; return True if all were removed.

    If a file cannot be removed, skip the later steps: they delete the manifests that name the file,
    and the next run needs these manifests.
    """
    account.spared += plan.spared
    account.notes += plan.notes
    for step in plan.steps:
        if not account.deleter.remove(step):
            return False
    if handle.options.snapshot_clean_empty_directories and not account.dry_run:
        buckets = bucket_directories(handle, plan.files)
        account.directories += remove_empty_directories(handle, buckets)
    return True


def _hide(handle: TableHandle, account: Account, path: str, what: str, snapshot: Snapshot) -> None:
    size = len(snapshot.to_json())
    removal = Removal(
        handle.storage, path, FileClass.SNAPSHOT, f"{what} {snapshot.id} expires", size
    )
    account.deleter.remove_now(removal)


def _point_at(handle: TableHandle, account: Account, files: NumberedFiles, end: int) -> None:
    """Write ``end`` to the hint EARLIEST, after the files with lower numbers are deleted.

    A hint that is too high would hide existing files. Making the hint durable also makes the
    deletions durable.
    """
    if account.dry_run:
        return
    try:
        files.write_earliest_hint(end)
    except LakeError as error:
        _log.warning(
            "could not update the hint %s: %s No action needed: readers list the directory, and a "
            "later expiry writes the hint",
            *(handle.storage.uri(f"{files.directory}/EARLIEST"), sentence(error)),
        )
