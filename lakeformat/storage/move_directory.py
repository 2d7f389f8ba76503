# SPDX-License-Identifier: Apache-2.0
"""Moves a directory: in one step if the storage can, otherwise by copying its files."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakeformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    NotFoundError,
)
from lakeformat.storage.base import Storage
from lakeformat.storage.copy_directory import MOVE_MARK, copy_directory
from lakeformat.storage.locked_creation import LockedCreation

__all__ = ["MovesDirectories", "is_moving", "move_directory", "mover"]


@runtime_checkable
class MovesDirectories(Protocol):
    """A storage that can rename a directory with its content in one step."""

    def rename_directory(self, old: str, new: str) -> None:
        """Rename a directory in one step, durably.

        Missing directories above ``new`` are created. Raise ``NotFoundError`` if ``old`` does not
        exist, and ``AlreadyExistsError`` if ``new`` exists; then nothing changes. The storage
        decides if an empty directory counts as existing.
        """
        ...


def mover(storage: Storage) -> MovesDirectories | None:
    """Return the storage if it can rename directories, else None.

    In place of a ``LockedCreation``, the storage inside it is examined and returned.
    """
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage if isinstance(storage, MovesDirectories) else None


def move_directory(storage: Storage, old: str, new: str, *, last: str) -> None:
    """Move a directory with its content.

    If the storage cannot do that in one step, files are copied and then deleted. The files below
    the subdirectory ``last`` are copied last and deleted first. Repeat the call after a crash to
    finish the work. Nothing is deleted before the new directory is complete.

    Raise ``AlreadyExistsError`` if ``new`` has files that are not from this move, and
    ``CommitConflictError`` if ``old`` changes meanwhile. Raise ``NotFoundError`` if another call of
    this move, or a drop, has already moved ``old`` or begun to delete it. Raise
    ``InvalidRequestError`` if both are one directory, or one is inside the other.
    """
    _require_apart(storage, old, new)
    at_once = mover(storage)
    if at_once is not None:
        at_once.rename_directory(old, new)
        return
    mark = f"{new}/{MOVE_MARK}"
    is_first_try = storage.create(mark, old.encode())
    if not is_first_try and not is_moving(storage, old, new):
        raise AlreadyExistsError(
            f"Cannot move {storage.uri(old)} to {storage.uri(new)}: according to"
            f" {storage.uri(mark)}, another move to that name is not finished. Choose another name."
        )
    try:
        copy_directory(storage, old, new, last=last)
    except (AlreadyExistsError, CommitConflictError):
        if is_first_try:
            storage.delete(mark)
        raise
    storage.delete_directory(f"{old}/{last}")
    storage.delete_directory(old)
    storage.delete(mark)


def is_moving(storage: Storage, old: str, new: str) -> bool:
    """Return True if the new directory has the mark of an unfinished move from ``old``.

    Only the mark is read. Equal files in both directories would prove nothing: two new tables may
    have the same schema.
    """
    try:
        return storage.read(f"{new}/{MOVE_MARK}") == old.encode()
    except NotFoundError:
        return False


def _require_apart(storage: Storage, old: str, new: str) -> None:
    source, target = (f"{path.strip('/')}/" for path in (old, new))
    if source.startswith(target) or target.startswith(source):
        raise InvalidRequestError(
            f"Cannot move {storage.uri(old)} to {storage.uri(new)}: both are one directory, or "
            "one is inside the other. Choose a directory outside of both."
        )
