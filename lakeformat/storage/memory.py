# SPDX-License-Identifier: Apache-2.0
"""Files in the memory of this process: for tests, examples and temporary tables."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, NoReturn
from urllib.parse import quote

import pyarrow as pa

from lakeformat.environment import SYSTEM
from lakeformat.errors import AlreadyExistsError, InvalidRequestError, NotFoundError
from lakeformat.storage.base import SMALL_FILE, FileInfo, refuse_root, too_large, vanished

__all__ = ["MemoryStorage", "shared_memory_storage"]


@dataclass(frozen=True, slots=True)
class _StoredFile:
    content: bytes
    modified_millis: int


class MemoryStorage:
    """A thread-safe storage in a dict.

    A directory exists if it was created, or if a file is below it.
    """

    def __init__(
        self, name: str = "default", *, clock: Callable[[], int] = SYSTEM.now_millis
    ) -> None:
        self.name = name
        self._clock = clock
        self._lock = threading.RLock()
        self._files: dict[str, _StoredFile] = {}
        self._made: set[str] = set()
        self._gone: set[str] = set()
        """Directories that were renamed or deleted; ``create`` treats every other directory as
        existing.
        """

    def __reduce__(self) -> NoReturn:
        """Raise ``InvalidRequestError``: another process cannot use the memory of this process."""
        raise InvalidRequestError(
            f"{self.uri('')} is in the memory of this process: another process cannot read or write"
            " it. Use a warehouse on disk or in a bucket."
        )

    @property
    def scheme(self) -> str:
        """Always ``memory``."""
        return "memory"

    def uri(self, path: str) -> str:
        """Return ``memory://<name>/<path>``."""
        return f"memory://{quote(self.name, safe='')}/{quote(_key(path), safe='/=:@,+')}"

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        """Return a file's content; raise ``TooLargeError`` if it has more than ``limit`` bytes."""
        content = self._content(path)
        if len(content) > limit:
            raise too_large(self.uri(path), len(content), limit)
        return content

    def _content(self, path: str) -> bytes:
        with self._lock:
            file = self._files.get(_key(path))
        if file is None:
            raise NotFoundError(f"Cannot read {self.uri(path)}: no such file. Check the path.")
        return file.content

    def open_input(self, path: str) -> IO[bytes]:
        """Open a ``pyarrow.BufferReader`` on the content, without a copy."""
        stream: IO[bytes] = pa.BufferReader(self._content(path))
        return stream

    @contextmanager
    def open_output(self, path: str) -> Iterator[IO[bytes]]:
        """Open a stream into a new file, which exists once the block ends without an error.

        Raise ``AlreadyExistsError`` if the path is taken.
        """
        self._refuse_taken(path)
        with pa.BufferOutputStream() as stream:
            yield stream
            content = stream.getvalue().to_pybytes()
        with self._lock:
            self._refuse_taken(path)
            self.overwrite(path, content)

    def create(self, path: str, content: bytes) -> bool:
        """Publish ``content`` as ``path``; return False if the path is taken."""
        with self._lock:
            if _key(path) in self._files:
                return False
            above = _key(path).rpartition("/")[0].rpartition("/")[0]
            if above in self._gone and not self.directory_exists(above):
                raise vanished(self.uri(path))
            self.overwrite(path, content)
            return True

    def overwrite(self, path: str, content: bytes) -> None:
        """Create a file, or replace it in one step."""
        with self._lock:
            self._files[_key(path)] = _StoredFile(bytes(content), self._clock())

    def exists(self, path: str) -> bool:
        """Return True if a file (not a directory) is at ``path``."""
        with self._lock:
            return _key(path) in self._files

    def list(self, path: str) -> builtins.list[FileInfo]:
        """Return the direct children of a directory, sorted by name; empty if it does not exist."""
        with self._lock:
            inside = _inside(path)
            below = {key.removeprefix(inside) for key in self._keys() if key.startswith(inside)}
            names = {rest.partition("/")[0] for rest in below}
            return [self._info(path, name) for name in sorted(names - {""})]

    def make_directory(self, path: str) -> None:
        """Create an empty directory with its parents; do nothing if it exists."""
        with self._lock:
            segments = _key(path).split("/")
            self._made.update("/".join(segments[:end]) for end in range(1, len(segments) + 1))

    def directory_exists(self, path: str) -> bool:
        """Return True if ``path`` is a directory, even if it is empty."""
        with self._lock:
            inside = _inside(path)
            return _key(path) in self._made or any(key.startswith(inside) for key in self._keys())

    def delete(self, path: str) -> None:
        """Delete one file; do nothing if it is missing."""
        with self._lock:
            self._files.pop(_key(path), None)

    def delete_directory(self, path: str) -> None:
        """Delete a directory with its content; do nothing if it is missing."""
        refuse_root(path, self.uri(path))
        with self._lock:
            for file in self.files(path):
                del self._files[_key(file)]
            inside = _inside(path)
            self._gone.add(_key(path))
            self._made = {key for key in self._made if not f"{key}/".startswith(inside)}

    def remove_empty_directory(self, path: str) -> bool:
        """Delete an empty directory and return True; return False if the directory has content."""
        with self._lock:
            if self.list(path):
                return False
            self.delete_directory(path)
            return True

    def rename_directory(self, old: str, new: str) -> None:
        """Rename a directory in one step; see ``MovesDirectories``."""
        with self._lock:
            if not self.directory_exists(old):
                raise NotFoundError(
                    f"Cannot rename {self.uri(old)}: no such directory. Check the path."
                )
            if self.exists(new) or any(key.startswith(_inside(new)) for key in self._keys()):
                raise AlreadyExistsError(
                    f"Cannot rename to {self.uri(new)}: the name is taken. Choose another name."
                )
            self.make_directory(new)
            inside, target = _inside(old), _inside(new)
            self._gone.add(_key(old))
            for key in [key for key in self._files if key.startswith(inside)]:
                self._files[target + key.removeprefix(inside)] = self._files.pop(key)
            moved = {key for key in self._made if key.startswith(inside)}
            self._made -= {*moved, _key(old)}
            self._made |= {target + key.removeprefix(inside) for key in moved}

    def files(self, path: str = "") -> dict[str, bytes]:
        """Return the content of every file below a directory, by path."""
        with self._lock:
            inside = _inside(path)
            found = sorted(key for key in self._files if key.startswith(inside))
            return {key: self._files[key].content for key in found}

    def copy(self) -> MemoryStorage:
        """Return an independent storage with the same files, directories and times."""
        with self._lock:
            twin = MemoryStorage(self.name, clock=self._clock)
            twin._files = dict(self._files)
            twin._made = set(self._made)
            twin._gone = set(self._gone)
            return twin

    def _keys(self) -> Iterator[str]:
        yield from self._files
        yield from self._made

    def _info(self, directory: str, name: str) -> FileInfo:
        path = f"{directory}/{name}"
        file = self._files.get(_key(path))
        if file is None:
            return FileInfo(path, name, is_directory=True, size=0, modified_millis=0)
        return FileInfo(path, name, False, len(file.content), file.modified_millis)

    def _refuse_taken(self, path: str) -> None:
        if self.exists(path):
            raise AlreadyExistsError(
                f"Cannot create {self.uri(path)}: the name is taken. Choose another name."
            )


_shared: dict[str, MemoryStorage] = {}
_shared_lock = threading.Lock()


def shared_memory_storage(name: str) -> MemoryStorage:
    """Return the storage with this name in this process; the first call creates it."""
    with _shared_lock:
        return _shared.setdefault(name, MemoryStorage(name))


def _key(path: str) -> str:
    # The root of a storage is "", so callers that join with a slash pass "/orders" for "orders".
    return path.strip("/")


def _inside(path: str) -> str:
    key = _key(path)
    return f"{key}/" if key else ""
