# SPDX-License-Identifier: Apache-2.0
"""Creates a branch: empty, or from a tag or snapshot of main."""

from __future__ import annotations

import logging
from contextlib import suppress

from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
)
from lakeformat.paimon.branches.marker import Creation, clear, mark, read_mark
from lakeformat.paimon.branches.observed import observe_branch
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.branch_directory import check_branch_name
from lakeformat.paimon.metadata.schema_file import schema_ids
from lakeformat.paimon.metadata.tag import snapshot_content
from lakeformat.paimon.tags.source import Origin
from lakeformat.storage.base import LARGE_FILE
from lakeformat.tables.create_once import create_or_find
from lakeformat.tables.file_name_part import check_new_branch_name
from lakeformat.tables.reference_reports import BranchReport

__all__ = ["create", "put", "refuse_inside_branch"]

_log = logging.getLogger(__name__)


def create(
    handle: TableHandle,
    name: str,
    origin: Origin | None,
    *,
    exist_ok: bool = False,
    dry_run: bool = False,
) -> BranchReport:
    """Create a branch that begins at ``origin``, a snapshot of main.

    With ``origin=None`` the branch has no rows.

    Raise AlreadyExistsError if the branch exists; with ``exist_ok``, report it as kept instead,
    even if it began at another snapshot. With or without ``exist_ok``, raise AlreadyExistsError if
    an unfinished call deletes or renames the branch, or creates it from another snapshot. After an
    interruption, repeat the call: it finishes the creation. Raise CommitConflictError if the
    snapshot is deleted meanwhile.
    """
    check_branch_name(_text(name))
    refuse_inside_branch(handle, "created")
    work = _work(handle, origin)
    target = handle.layout.on_branch(name)
    begun = read_mark(handle, name)
    if begun is None:
        if handle.storage.directory_exists(target.metadata_root):
            return _kept(handle, name, exist_ok, dry_run)
        check_new_branch_name(name)
    elif begun != work:
        raise _other_work(handle, name)
    if not dry_run:
        _make(handle, name, work, origin, is_first=begun is None)
        observe_branch(handle, name)
    elif origin is not None:
        origin.require_kept(handle, f"branch {name!r}")
    number = None if work.snapshot is None else work.snapshot.id
    begins = "with the columns of main and no rows" if number is None else f"at snapshot {number}"
    if not dry_run:
        _log.info("created branch %r of %s, which begins %s", name, handle.uri, begins)
    return BranchReport(
        table=handle.uri,
        branch=name,
        action="created",
        snapshot_id=number,
        reason=f"branch {name!r} {'would begin' if dry_run else 'begins'} {begins}",
        dry_run=dry_run,
    )


def _make(
    handle: TableHandle, name: str, work: Creation, origin: Origin | None, *, is_first: bool
) -> None:
    if is_first and not mark(handle, name, work) and read_mark(handle, name) != work:
        raise _other_work(handle, name)
    try:
        _write(handle, handle.layout.on_branch(name), work, origin)
    except NotFoundError:
        _require_origin(handle, name, work, origin)
        raise
    clear(handle, name)
    _require_origin(handle, name, work, origin)


def _require_origin(handle: TableHandle, name: str, work: Creation, origin: Origin | None) -> None:
    """Delete the new branch and raise CommitConflictError if its first snapshot was deleted on
    main.
    """
    if origin is None:
        return
    try:
        origin.require_kept(handle, f"branch {name!r}")
    except LakeError:
        _take_back(handle, name, work)
        raise


def refuse_inside_branch(handle: TableHandle, what: str) -> None:
    """Raise InvalidRequestError if the table was opened on a branch; branches are managed from
    main.

    ``what`` is the participle for the message, such as "renamed".
    """
    if handle.layout.metadata_root != handle.layout.root:
        raise InvalidRequestError(
            f"branches can be {what} only from main, but this is branch {handle.layout.branch!r} "
            f"of {handle.uri}: open the table without a branch"
        )


def _text(name: str) -> str:
    if not isinstance(name, str):
        raise InvalidRequestError(f"the name of a branch must be a str, got {name!r}")
    return name


def _work(handle: TableHandle, origin: Origin | None) -> Creation:
    newest = require_same_table(handle)
    if origin is None:
        return Creation(None, None, newest)
    return Creation(origin.tag, origin.snapshot, origin.snapshot.schema_id)


def _kept(handle: TableHandle, name: str, exist_ok: bool, dry_run: bool) -> BranchReport:
    if not exist_ok:
        raise AlreadyExistsError(
            f"{handle.uri} already has a branch {name!r}: choose another name, or delete that "
            "branch first"
        )
    return BranchReport(
        table=handle.uri,
        branch=name,
        action="kept",
        snapshot_id=None,
        reason=f"branch {name!r} already existed",
        dry_run=dry_run,
    )


def _write(handle: TableHandle, target: TableLayout, work: Creation, origin: Origin | None) -> None:
    """Write the schemas up to the schema of the first snapshot, then the tag, and the snapshot
    last.

    Files that an interrupted attempt wrote are kept.
    """
    storage, source = handle.storage, handle.layout
    storage.make_directory(target.metadata_root)
    for schema_id in schema_ids(storage, source):
        if schema_id <= work.schema_id:
            put(handle, target.schema(schema_id), storage.read(source.schema(schema_id)))
    if origin is None:
        return
    number = origin.snapshot.id
    if origin.tag is None:
        put(handle, target.snapshot(number), storage.read(source.snapshot(number)))
        return
    content = snapshot_content(storage, source, origin.tag)
    put(handle, target.tag(origin.tag), storage.read(source.tag(origin.tag)))
    put(handle, target.snapshot(number), content)


def put(handle: TableHandle, path: str, content: bytes) -> None:
    """Write a file, or keep an existing file with the same content.

    Raise CommitConflictError if the existing file has other content.
    """
    storage = handle.storage
    if not create_or_find(storage, path, content) and storage.read(path, LARGE_FILE) != content:
        raise CommitConflictError(
            f"{handle.storage.uri(path)} exists with other content: another program is creating "
            "a branch of the same name, or is committing to the branch that is being renamed. "
            "Repeat the call, or choose another name"
        )


def _take_back(handle: TableHandle, name: str, work: Creation) -> None:
    """Hide and delete a new branch, because its origin on main was deleted; a LakeError is
    ignored.
    """
    with suppress(LakeError):
        mark(handle, name, work)
        handle.storage.delete_directory(handle.layout.on_branch(name).metadata_root)
        clear(handle, name)


def _other_work(handle: TableHandle, name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"branch {name!r} of {handle.uri} is being created from another snapshot, or deleted, by "
        "another call, which may have been interrupted: wait until it ends, or delete the branch "
        "and create it again"
    )
