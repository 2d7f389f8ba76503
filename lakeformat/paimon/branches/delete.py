# SPDX-License-Identifier: Apache-2.0
"""Deletes a branch, and the files that only this branch needs."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakeformat.errors import CommitConflictError, CorruptTableError, InvalidRequestError
from lakeformat.paimon.branches.create import refuse_inside_branch
from lakeformat.paimon.branches.marker import Creation, Deletion, Move, clear, mark, read_mark
from lakeformat.paimon.deletion import Deleter, OnRemoval, find_protection
from lakeformat.paimon.deletion.retried_reads import look_again
from lakeformat.paimon.handle import READ_THROUGH, TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches, check_branch_name, require_branch
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.tags.exclusive_files import Lost, remove_exclusive_files
from lakeformat.tables.deleter import Deleted
from lakeformat.tables.reference_reports import DeletionReport
from lakeformat.types.count_text import counted

__all__ = ["delete", "refuse_read_through"]

_log = logging.getLogger(__name__)


def delete(
    handle: TableHandle, name: str, *, dry_run: bool = False, on_progress: OnRemoval | None = None
) -> DeletionReport:
    """Delete a branch, and the files that only it needs.

    The branch becomes unreadable before the first file is removed. Repeat the call after an
    interruption, or if files could not be removed. Raise NotFoundError if the branch does not
    exist. Raise InvalidRequestError if the branch is being renamed, or if main or another branch
    reads its rows. Raise CommitConflictError if another program creates or deletes the branch
    meanwhile.
    """
    check_branch_name(name)
    refuse_inside_branch(handle, "deleted")
    target = handle.layout.on_branch(name)
    begun = read_mark(handle, name)
    if isinstance(begun, Move):
        raise InvalidRequestError(
            f"branch {begun.old!r} of {handle.uri} is being renamed to {begun.new!r}, or the "
            "rename was interrupted: repeat the rename, then delete the branch"
        )
    if begun is None:
        require_branch(handle.storage, target)
        refuse_read_through(handle, name, "deleted")
    lost = begun if isinstance(begun, Deletion) else _lost(handle, target)
    if isinstance(begun, Creation):
        lost = Deletion((), (), ())  # unfinished: no reader has seen it, so it owns no files
    if not dry_run:
        if begun is None and not mark(handle, name, lost):
            raise _meanwhile(handle, name)
        _log.info(
            "deleted branch %r of %s; removing the files that only this branch needed",
            name,
            handle.uri,
        )
        handle.storage.delete_directory(target.metadata_root)
    deleter = Deleter(
        handle.options.file_operation_threads,
        dry_run=dry_run,
        on_progress=on_progress,
        later="Delete the branch again to remove the file",
    )
    try:
        done = _remove_files(handle, name, lost, deleter, dry_run)
    except CorruptTableError as damage:
        if dry_run:
            raise
        raise CorruptTableError(
            f"branch {name!r} of {handle.uri} is deleted, but its files were not removed, because "
            "another snapshot or tag cannot be read. Expire such snapshots and delete such tags, "
            f"then delete the branch again to remove its files. First error: {damage}"
        ) from damage
    if done and not dry_run:
        clear(handle, name)
    return _report(handle, name, deleter.deleted, dry_run=dry_run)


def _report(handle: TableHandle, name: str, deleted: Deleted, *, dry_run: bool) -> DeletionReport:
    verb = "would be deleted" if dry_run else "deleted"
    files = (
        f"{counted(deleted.total, 'file')} that only it needed"
        if deleted.total
        else "no other file"
    )
    reason = f"branch {name!r} {verb}, and {files}"
    if deleted.failures:
        failed = counted(deleted.failures, "file")
        reason += f"; could not remove {failed}: delete the branch again to remove the rest"
    return DeletionReport(
        table=handle.uri,
        deleted=(name,),
        files={str(kind): count for kind, count in sorted(deleted.files.items())},
        bytes=deleted.bytes,
        failures=deleted.failures,
        failed=tuple(deleted.failed),
        dry_run=dry_run,
        reason=reason,
    )


def refuse_read_through(handle: TableHandle, name: str, what: str) -> None:
    """Raise InvalidRequestError if reads of main or of another branch include rows of branch
    ``name``.

    ``what`` is the participle for the message, such as "deleted".
    """
    storage = handle.storage
    for branch in (MAIN_BRANCH, *(each.name for each in branches(storage, handle.layout))):
        layout = handle.layout.on_branch(branch)
        newest = latest_schema_id(storage, layout)
        if newest is None or branch == name:
            continue
        options = read_schema(storage, layout, newest).options
        for key in READ_THROUGH:
            if options.get(key) == name:
                raise InvalidRequestError(
                    f"branch {name!r} of {handle.uri} cannot be {what}, because branch {branch!r} "
                    f"reads its rows (option {key!r}): remove that option first"
                )


def _lost(handle: TableHandle, target: TableLayout) -> Deletion:
    """Return the snapshots, tags and changelogs whose files the deletion may delete."""
    storage = handle.storage
    found = (read_snapshot_if_present(storage, target, n) for n in snapshot_ids(storage, target))
    snapshots = [snapshot for snapshot in found if snapshot is not None]
    tags = [tag.snapshot for tag in read_tags(storage, target)]
    numbers = changelog_ids(storage, target)
    read = (read_changelog_if_present(storage, target, number) for number in numbers)
    changelogs = [changelog for changelog in read if changelog is not None]
    # A tag of the oldest snapshot need not be checked twice.
    known = snapshots[:1]
    return Deletion(
        (*known, *(tag for tag in tags if tag not in known)),
        tuple(snapshots[1:]),
        tuple(changelogs),
    )


def _meanwhile(handle: TableHandle, name: str) -> CommitConflictError:
    return CommitConflictError(
        f"another program is creating or deleting branch {name!r} of {handle.uri}: check if the "
        "branch exists, and delete it again"
    )


def _remove_files(
    handle: TableHandle, name: str, lost: Deletion, deleter: Deleter, dry_run: bool
) -> bool:
    """Remove the files that only the branch needs; return True if all of them were removed."""
    branch = replace(handle, layout=handle.layout.on_branch(name))

    def remove() -> bool:
        return remove_exclusive_files(
            handle,
            Lost(lost.states, lost.additions, lost.changelogs, with_changes=True),
            find_protection(branch, oldest=None, without_branches=[name]),
            deleter,
            f"only branch {name!r} referred to it",
            dry_run=dry_run,
        )

    return look_again(handle, remove)
