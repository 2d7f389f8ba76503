"""Moving a directory: at once where the storage can, by copying where somebody insists."""

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
    """What a storage can do beyond ``Storage`` that keeps directories apart from their files."""

    def rename_directory(self, old: str, new: str) -> None:
        """Give a directory another path, whole, durable and at once.

        Its new parent need not be there. ``NotFoundError`` when it is not there itself;
        ``AlreadyExistsError``, and nothing changes, when the new path is taken. Whether an empty
        directory takes a path is up to the storage.
        """
        ...


def mover(storage: Storage) -> MovesDirectories | None:
    """The storage, if it can move directories at once; a lock around it makes no difference."""
    while isinstance(storage, LockedCreation):
        storage = storage.inner
    return storage if isinstance(storage, MovesDirectories) else None


def move_directory(storage: Storage, old: str, new: str, *, last: str) -> None:
    """Move a directory with everything in it.

    Where the storage cannot do it at once, files are copied and then removed, those below the
    child ``last`` after the others: repeated after a crash, that finishes the work. Nothing is
    removed before the new directory has all of the old one; see ``copy_directory`` for what is
    refused.
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
            f"Cannot move {storage.uri(old)} to {storage.uri(new)}: another directory is being"
            f" copied there, as {storage.uri(mark)} says. Choose another name."
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
    """Whether what is in the new place was copied there by a move that is not finished.

    Equal content is no proof of that: two new tables may have the same schema.
    """
    try:
        return storage.read(f"{new}/{MOVE_MARK}") == old.encode()
    except NotFoundError:
        return False


def _require_apart(storage: Storage, old: str, new: str) -> None:
    """What is removed at the end must not hold what was copied."""
    source, target = (f"{path.strip('/')}/" for path in (old, new))
    if source.startswith(target) or target.startswith(source):
        raise InvalidRequestError(
            f"Cannot move {storage.uri(old)} to {storage.uri(new)}: one is the other, or inside"
            " it. Choose a directory beside it."
        )
