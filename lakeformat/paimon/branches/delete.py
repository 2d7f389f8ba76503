"""Deleting a branch, with the files that only it held."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.paimon.branches.create import refuse_inside_branch
from lakeformat.paimon.branches.marker import Creation, Deletion, Move, clear, mark, read_mark
from lakeformat.paimon.deletion import Deleter, OnRemoval, find_protection
from lakeformat.paimon.deletion.again import look_again
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import branches, check_branch_name, require_branch
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog_if_present
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.paimon.metadata.tag import read_tags
from lakeformat.paimon.options.branches import READ_THROUGH
from lakeformat.paimon.tags.exclusive_files import DeletionReport, Lost, remove_exclusive_files
from lakeformat.types.count_text import counted

__all__ = ["delete", "refuse_read_through"]

_log = logging.getLogger(__name__)


def delete(
    handle: TableHandle, name: str, *, dry_run: bool = False, on_progress: OnRemoval | None = None
) -> DeletionReport:
    """Delete a branch, and the files no snapshot or tag of main or another branch leads to.

    It cannot be read any more before the first file goes; repeated after it broke off, or where
    files would not go, it removes the rest.
    """
    check_branch_name(name)
    refuse_inside_branch(handle, "deleted")
    target = handle.layout.on_branch(name)
    begun = read_mark(handle, name)
    if isinstance(begun, Move):
        raise InvalidRequestError(
            f"branch {begun.old!r} of {handle.uri} is being renamed to {begun.new!r}, or that "
            "broke off: rename it again, and delete it then"
        )
    if begun is None:
        require_branch(handle.storage, target)
        refuse_read_through(handle, name, "deleted")
    lost = begun if isinstance(begun, Deletion) else _lost(handle, target)
    if isinstance(begun, Creation):
        lost = Deletion((), (), ())  # nobody has seen it, so it holds nothing of its own
    if not dry_run:
        if begun is None and not mark(handle, name, lost):
            raise _meanwhile(handle, name)
        _log.info("branch %r of %s is gone; removing what only it held", name, handle.uri)
        handle.storage.delete_directory(target.metadata_root)
    deleter = Deleter(handle, dry_run=dry_run, on_progress=on_progress)
    done = _remove_files(handle, name, lost, deleter, dry_run)
    if done and not dry_run:
        clear(handle, name)
    deleted = deleter.deleted
    verb = "would go" if dry_run else "deleted"
    files = (
        f"{counted(deleted.total, 'file')} that only it led to"
        if deleted.total
        else "no other file"
    )
    said = f"branch {name!r} {verb}, and {files}"
    if deleted.failures:
        said += f"; {deleted.failures} would not go: delete the branch again to remove them"
    return DeletionReport(
        table=handle.uri,
        deleted=(name,),
        files={str(kind): count for kind, count in sorted(deleted.files.items())},
        bytes=deleted.bytes,
        failures=deleted.failures,
        failed=tuple(deleted.failed),
        dry_run=dry_run,
        reason=said,
    )


def refuse_read_through(handle: TableHandle, name: str, what: str) -> None:
    """Refuse to lose a branch in which main, or another branch, looks for rows."""
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
                    f"branch {name!r} of {handle.uri} is in use: option {key!r} of branch "
                    f"{branch!r} reads rows from it, so it cannot be {what}; remove the option "
                    "first"
                )


def _lost(handle: TableHandle, target: TableLayout) -> Deletion:
    """What a branch leads to: its oldest snapshot and tags, and what came after that."""
    storage = handle.storage
    found = (read_snapshot_if_present(storage, target, n) for n in snapshot_ids(storage, target))
    snapshots = [snapshot for snapshot in found if snapshot is not None]
    tags = [tag.snapshot for tag in read_tags(storage, target)]
    told = (read_changelog_if_present(storage, target, n) for n in changelog_ids(storage, target))
    changelogs = [changelog for changelog in told if changelog is not None]
    # In a tag of what is a snapshot, too, there is nothing to look for twice.
    known = snapshots[:1]
    return Deletion(
        (*known, *(tag for tag in tags if tag not in known)),
        tuple(snapshots[1:]),
        tuple(changelogs),
    )


def _meanwhile(handle: TableHandle, name: str) -> CommitConflictError:
    return CommitConflictError(
        f"somebody makes or deletes branch {name!r} of {handle.uri} at this moment: look at what "
        "is there and delete it again"
    )


def _remove_files(
    handle: TableHandle, name: str, lost: Deletion, deleter: Deleter, dry_run: bool
) -> bool:
    """Seen from the branch, main and all others are what has to be spared."""
    branch = replace(handle, layout=handle.layout.on_branch(name))

    def remove() -> bool:
        return remove_exclusive_files(
            handle,
            Lost(lost.states, lost.additions, lost.changelogs, with_changes=True),
            find_protection(branch, oldest=None, without_branches=[name]),
            deleter,
            f"only branch {name!r} led to it",
            dry_run=dry_run,
        )

    return look_again(handle, remove)
