# SPDX-License-Identifier: Apache-2.0
"""Renames a branch of a table."""

from __future__ import annotations

from collections.abc import Iterator

from lakeformat.errors import AlreadyExistsError, CommitConflictError
from lakeformat.paimon.branches.create import put, refuse_inside_branch
from lakeformat.paimon.branches.delete import refuse_read_through
from lakeformat.paimon.branches.marker import Move, clear, mark, read_mark
from lakeformat.paimon.branches.observed import observe_branch
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.branch_directory import check_branch_name, require_branch
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot_id, snapshot_ids
from lakeformat.storage.base import LARGE_FILE
from lakeformat.storage.move_directory import mover
from lakeformat.tables.reference_reports import BranchReport

__all__ = ["rename"]


def rename(handle: TableHandle, name: str, new_name: str, *, dry_run: bool = False) -> BranchReport:
    """Rename a branch: move or copy its metadata; data files do not move.

    A program that has the branch open under its old name fails at its next commit. A commit during
    the call may fail with CommitOutcomeUnknownError. A storage that cannot move directories copies
    the metadata files. If another program commits during the copy,
    raise CommitConflictError; the branch keeps its name. After a crash, repeat the call to finish.
    Raise NotFoundError if the branch does not exist, AlreadyExistsError if the new name exists, and
    InvalidRequestError if main or another branch reads the rows of this branch.
    """
    refuse_inside_branch(handle, "renamed")
    for each in (name, new_name):
        check_branch_name(each)
    work = Move(name, new_name)
    if read_mark(handle, name) != work:  # otherwise this call finishes an interrupted rename
        _require_free(handle, work)
    old, new = (handle.layout.on_branch(each) for each in (name, new_name))
    if not dry_run:
        _move(handle, work, old, new)
        observe_branch(handle, new_name)
    done = f"would be renamed to {new_name!r}" if dry_run else f"was renamed to {new_name!r}"
    return BranchReport(
        table=handle.uri,
        branch=new_name,
        action="renamed",
        snapshot_id=latest_snapshot_id(handle.storage, old if dry_run else new),
        reason=f"branch {name!r} {done}",
        dry_run=dry_run,
    )


def _move(handle: TableHandle, work: Move, old: TableLayout, new: TableLayout) -> None:
    at_once = mover(handle.storage)
    if at_once is not None:
        at_once.rename_directory(old.metadata_root, new.metadata_root)
    else:
        _copy(handle, work, old, new)


def _require_free(handle: TableHandle, work: Move) -> None:
    storage = handle.storage
    require_branch(storage, handle.layout.on_branch(work.old))
    refuse_read_through(handle, work.old, "renamed")
    begun = read_mark(handle, work.new)
    if begun == work:
        return
    is_there = storage.directory_exists(handle.layout.on_branch(work.new).metadata_root)
    if work.old == work.new or begun is not None or is_there:
        way = "" if work.old == work.new else ", or delete that branch first"
        why = "already exists" if begun is None else "is being created, renamed or deleted"
        raise AlreadyExistsError(
            f"branch {work.old!r} of {handle.uri} cannot be renamed to {work.new!r}, which {why}: "
            f"choose another name{way}"
        )


def _copy(handle: TableHandle, work: Move, old: TableLayout, new: TableLayout) -> None:
    """Copy the metadata files to the new name, and delete those of the old name.

    The new name is hidden until the copy is complete; then the old name is hidden. If another
    program commits to the branch meanwhile, delete the copy and raise CommitConflictError.
    """
    storage = handle.storage
    if read_mark(handle, work.old) != work:
        mark(handle, work.new, work)
        try:
            storage.make_directory(new.metadata_root)
            for path in _files(handle, old.metadata_root):
                below = path.removeprefix(old.metadata_root)
                put(handle, f"{new.metadata_root}{below}", storage.read(path, LARGE_FILE))
        except CommitConflictError:
            _give_up(handle, work, new)
            raise
        mark(handle, work.old, work)
    if storage.exists(handle.layout.unfinished_branch(work.new)):
        if storage.directory_exists(old.metadata_root) and _differ(handle, old, new):
            clear(handle, work.old)
            _give_up(handle, work, new)
            raise CommitConflictError(
                f"another program commits to branch {work.old!r} of {handle.uri}, so the branch "
                "was not renamed: try again when no writer is active"
            )
        clear(handle, work.new)
    storage.delete_directory(old.metadata_root)
    clear(handle, work.old)


def _differ(handle: TableHandle, old: TableLayout, new: TableLayout) -> bool:
    return snapshot_ids(handle.storage, old) != snapshot_ids(handle.storage, new)


def _give_up(handle: TableHandle, work: Move, new: TableLayout) -> None:
    handle.storage.delete_directory(new.metadata_root)
    clear(handle, work.new)


def _files(handle: TableHandle, directory: str) -> Iterator[str]:
    for info in handle.storage.list(directory):
        if info.is_directory:
            yield from _files(handle, info.path)
        else:
            yield info.path
