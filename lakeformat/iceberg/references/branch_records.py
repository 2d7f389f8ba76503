# SPDX-License-Identifier: Apache-2.0
"""Moves and deletes this library's records of a branch: those of consumers, streams and runs, and
staged results.

The commit that renames or deletes a branch does not change these files. So a rename copies them
before its commit, and deletes the old ones after it. If it crashes in between, the records of a
branch that does not exist are left. They are deleted before a branch gets this name.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

from lakeformat.errors import LakeError, NotFoundError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.own_files import branch_directory
from lakeformat.storage.base import LARGE_FILE

__all__ = ["delete_left_records", "forget_branch", "renamed_records"]

_log = logging.getLogger(__name__)


def delete_left_records(handle: TableHandle, branch: str) -> None:
    """Delete the records of an earlier branch of this name; do nothing if the branch exists."""
    if branch not in handle.load().metadata.references:
        _delete(handle, branch)


def forget_branch(handle: TableHandle, branch: str) -> None:
    """Delete the records of a deleted branch; a failure is only logged."""
    try:
        _delete(handle, branch)
    except LakeError as error:
        _log.warning(
            "%s: could not delete the records of the deleted branch %r. They are deleted if a "
            "branch of this name is created: %s",
            handle.uri,
            branch,
            error,
        )


@contextmanager
def renamed_records(handle: TableHandle, old: str, new: str) -> Iterator[None]:
    """Move the records of a branch, around the commit that renames it."""
    delete_left_records(handle, new)
    copied = _copy(handle, old, new, without=())
    yield
    _copy(handle, old, new, without=copied)
    forget_branch(handle, old)


def _copy(handle: TableHandle, old: str, new: str, *, without: Collection[str]) -> set[str]:
    storage, source = branch_directory(handle, old)
    _, target = branch_directory(handle, new)
    copied = {each for each in _records(handle, old) if each not in without}
    for each in copied:
        with suppress(NotFoundError):  # its owner has deleted it
            storage.overwrite(f"{target}/{each}", storage.read(f"{source}/{each}", LARGE_FILE))
    return copied


def _delete(handle: TableHandle, branch: str) -> None:
    storage, directory = branch_directory(handle, branch)
    for each in _records(handle, branch):
        storage.delete(f"{directory}/{each}")


def _records(handle: TableHandle, branch: str) -> list[str]:
    """Return the paths of a branch's records below its directory.

    They are the records of this table, and those of earlier releases, which name no table.
    """
    storage, directory = branch_directory(handle, branch)
    uuid, found = handle.load().metadata.table_uuid, []
    for kind in storage.list(directory):
        for each in storage.list(kind.path):
            if not each.is_directory:
                found.append(f"{kind.name}/{each.name}")
            elif uuid and each.name == quote(uuid, safe=""):
                inside = storage.list(each.path)
                found += [f"{kind.name}/{each.name}/{record.name}" for record in inside]
    return found
