"""Moving a directory: at once where the storage can, by copying where somebody insists."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol, runtime_checkable

from lakeformat.errors import AlreadyExistsError
from lakeformat.storage.base import FileInfo, Storage
from lakeformat.storage.locked_creation import LockedCreation

__all__ = ["MovesDirectories", "move_directory", "mover"]

_CHUNK = 8 << 20


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
    child ``last`` after the others: repeated after a crash, that finishes the work.
    """
    at_once = mover(storage)
    if at_once is not None:
        at_once.rename_directory(old, new)
        return
    _copy_directory(storage, old, new, last=last)
    storage.delete_directory(f"{old}/{last}")
    storage.delete_directory(old)


def _copy_directory(storage: Storage, old: str, new: str, *, last: str) -> None:
    """Copy every file that is not there yet.

    The small files below the child ``last`` come at the end, and each of them appears whole:
    what they say about the directory is then true.
    """
    inside = f"{old}/{last}/"
    late = []
    for file in _files(storage, old):
        if file.path.startswith(inside):
            late.append(file)
        else:
            _copy(storage, file, f"{new}{file.path.removeprefix(old)}")
    for file in late:
        storage.create(f"{new}{file.path.removeprefix(old)}", storage.read(file.path))


def _copy(storage: Storage, file: FileInfo, target: str) -> None:
    with suppress(AlreadyExistsError):  # an earlier try has copied it
        with storage.open_input(file.path) as source, storage.open_output(target) as sink:
            shutil.copyfileobj(source, sink, _CHUNK)
        return
    if _size(storage, target) != file.size:
        storage.delete(target)
        with storage.open_input(file.path) as source, storage.open_output(target) as sink:
            shutil.copyfileobj(source, sink, _CHUNK)


def _size(storage: Storage, path: str) -> int:
    with storage.open_input(path) as stream:
        return stream.seek(0, 2)


def _files(storage: Storage, directory: str) -> Iterator[FileInfo]:
    for info in storage.list(directory):
        if info.is_directory:
            yield from _files(storage, info.path)
        else:
            yield info
