# SPDX-License-Identifier: Apache-2.0
"""Renames a branch of a table."""

from __future__ import annotations

from fnmatch import fnmatchcase

from lakeformat.errors import AlreadyExistsError, CommitConflictError, NotFoundError
from lakeformat.paimon.branches.create import put, refuse_inside_branch
from lakeformat.paimon.branches.delete import refuse_read_through
from lakeformat.paimon.branches.marker import Move, clear, mark, read_mark
from lakeformat.paimon.branches.observed import observe_branch
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.branch_directory import check_branch_name, require_branch
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot_id
from lakeformat.storage.base import LARGE_FILE, FileInfo, Storage, temporary_sibling
from lakeformat.storage.move_directory import mover
from lakeformat.tables.file_name_part import check_new_branch_name
from lakeformat.tables.reference_reports import BranchReport

__all__ = ["rename"]

_HINTS = frozenset({"EARLIEST", "LATEST"})
"""Hint files, which only save a listing. They change after a commit, so they are not copied."""

_TEMPORARY = temporary_sibling("*", "*")


def rename(handle: TableHandle, name: str, new_name: str, *, dry_run: bool = False) -> BranchReport:
    """Rename a branch: move or copy its metadata; data files do not move.

    A program that has the branch open under its old name fails at its next commit. A commit during
    the call may fail with CommitOutcomeUnknownError. If the storage cannot move directories, the
    metadata files are copied. If another program changes the branch during the copy, raise
    CommitConflictError; the branch keeps its name. After a crash, repeat the call to finish. Raise
    NotFoundError if the branch does not exist, AlreadyExistsError if the new name exists, and
    InvalidRequestError if main or another branch reads the rows of this branch.
    """
    refuse_inside_branch(handle, "renamed")
    for each in (name, new_name):
        check_branch_name(each)
    work = Move(name, new_name)
    if read_mark(handle, name) != work:  # otherwise this call finishes an interrupted rename
        check_new_branch_name(new_name)
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
    program changes the branch meanwhile, delete the copy and raise CommitConflictError.

    A name is hidden by its mark. Two calls of the same rename may run at once, and write to the
    same copy. They must not delete both directories. So each call first removes one mark:

    - A call that finishes the copy removes the mark of the new name. Then it deletes the old
      directory, but only if the mark of the old name still exists.
    - A call that gives up removes the mark of the old name. Then it deletes the copy, but only if
      the mark of the new name still exists.

    One case is not covered: if a call begins while another one gives up, the branch can be lost.
    """
    is_repeated = read_mark(handle, work.old) == work
    if not is_repeated or read_mark(handle, work.new) == work:
        try:
            _hide_new(handle, work, new)
            _copy_files(handle, work, old, new, is_repeated=is_repeated)
        except (CommitConflictError, NotFoundError) as error:
            if read_mark(handle, work.new) == work:
                _give_up(handle, work, new)
            elif _is_renamed(handle, old, new):
                return  # by another call
            raise _changed(handle, work) from error
        clear(handle, work.new)
    if read_mark(handle, work.old) == work:
        handle.storage.delete_directory(old.metadata_root)
        clear(handle, work.old)
    elif not _is_renamed(handle, old, new):  # another call gave up
        raise _changed(handle, work)


def _hide_new(handle: TableHandle, work: Move, new: TableLayout) -> None:
    """Hide the new name; raise CommitConflictError if another program has just created it."""
    if not mark(handle, work.new, work):
        is_free = read_mark(handle, work.new) == work
    elif not (is_free := not handle.storage.directory_exists(new.metadata_root)):
        clear(handle, work.new)
    if not is_free:
        raise _changed(handle, work)


def _copy_files(
    handle: TableHandle, work: Move, old: TableLayout, new: TableLayout, *, is_repeated: bool
) -> None:
    """Copy the files and hide the old name; raise CommitConflictError if the files change."""
    storage = handle.storage
    files = _files(storage, old.metadata_root)
    storage.make_directory(new.metadata_root)
    for name in files:
        content = storage.read(f"{old.metadata_root}/{name}", LARGE_FILE)
        put(handle, f"{new.metadata_root}/{name}", content)
    hides = mark(handle, work.old, work)
    is_ours = hides or read_mark(handle, work.old) == work
    copies = _files(storage, new.metadata_root).keys()
    # An interrupted deletion of the old directory may have left only some of its files.
    is_whole = files.keys() <= copies if is_repeated else files and files.keys() == copies
    is_same = _files(storage, old.metadata_root) == files
    if is_ours and is_whole and is_same and read_mark(handle, work.new) == work:
        return
    if hides:
        clear(handle, work.old)
    raise _changed(handle, work)


def _is_renamed(handle: TableHandle, old: TableLayout, new: TableLayout) -> bool:
    exists = handle.storage.directory_exists
    return exists(new.metadata_root) and not exists(old.metadata_root)


def _changed(handle: TableHandle, work: Move) -> CommitConflictError:
    return CommitConflictError(
        f"another program is changing branch {work.old!r} of {handle.uri} or creating branch "
        f"{work.new!r}, so the branch was not renamed: try again when no writer is active"
    )


def _give_up(handle: TableHandle, work: Move, new: TableLayout) -> None:
    if read_mark(handle, work.old) == work:
        clear(handle, work.old)
    if read_mark(handle, work.new) == work:
        handle.storage.delete_directory(new.metadata_root)
        clear(handle, work.new)


def _files(storage: Storage, directory: str) -> dict[str, FileInfo]:
    """Return the files below a directory, without hints, by their path relative to it.

    Temporary files of interrupted writers are left out, too.
    """
    found: dict[str, FileInfo] = {}
    for info in storage.list(directory):
        if info.is_directory:
            below = _files(storage, info.path)
            found |= {f"{info.name}/{name}": file for name, file in below.items()}
        elif info.name not in _HINTS and not fnmatchcase(info.name, _TEMPORARY):
            found[info.name] = info
    return found
