# SPDX-License-Identifier: Apache-2.0
"""Files on HDFS and similar systems, published by a rename that refuses a taken name.

Arrow's ``move`` to a file is not safe: if HDFS refuses because the target exists, Arrow deletes the
target and renames again. It never does that if the target is a directory. So a file is prepared
under its final name in a temporary directory, and its final *directory* is the target of the move.
HDFS then appends the file's name to the target, and refuses the move if that name is taken.
"""

from __future__ import annotations

import builtins
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from pyarrow.fs import FileSelector, FileSystem, FileType

from lakeformat.environment import SYSTEM
from lakeformat.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.storage.base import (
    LARGE_FILE,
    SMALL_FILE,
    FileInfo,
    refuse_root,
    temporary_sibling,
    too_large,
    vanished,
)
from lakeformat.storage.creation_proof import require_proof

__all__ = ["RenameStorage"]


class RenameStorage:
    """A storage on an Arrow file system whose rename refuses a taken name.

    The first ``create`` tests that. ``authority`` is the part of an address before the path, such
    as ``hdfs://nn:8020``. The first use of the storage connects.
    """

    def __init__(
        self,
        connect: Callable[[], FileSystem],
        authority: str,
        *,
        ids: Callable[[], str] = SYSTEM.new_id,
    ) -> None:
        self._connect = connect
        self._authority = authority
        self._ids = ids
        self._connecting = threading.Lock()
        self._connected: FileSystem | None = None

    def __repr__(self) -> str:
        return f"RenameStorage({self._authority})"

    @property
    def scheme(self) -> str:
        """The scheme, such as ``hdfs``."""
        return self._authority.partition(":")[0]

    def uri(self, path: str) -> str:
        """Return ``<authority>/<path>``, without slashes at the ends of the path."""
        return f"{self._authority}/{path.strip('/')}"

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        """Return the content of a file; a file of more than ``limit`` bytes raises
        ``TooLargeError``.
        """
        with self.open_input(path) as stream, self._translated("read", path):
            if (size := stream.seek(0, io.SEEK_END)) > limit:
                raise too_large(self.uri(path), size, limit)
            stream.seek(0)
            return bytes(stream.read())

    def open_input(self, path: str) -> IO[bytes]:
        """Open an Arrow stream on a file."""
        self._require_file("read", path)
        with self._translated("read", path):
            stream: IO[bytes] = self._system.open_input_file(_absolute(path))
        return stream

    @contextmanager
    def open_output(self, path: str) -> Iterator[IO[bytes]]:
        """Open a stream into a new file, which readers may see while it grows.

        A taken path raises ``AlreadyExistsError``.
        """
        if self._type(path) is not FileType.NotFound:
            raise AlreadyExistsError(
                f"Cannot create {self.uri(path)}: the name is taken. Choose another name."
            )
        with self._translated("write", path):
            self._system.create_dir(_parent(path), recursive=True)
            stream = self._system.open_output_stream(_absolute(path))
        try:
            yield stream
            with self._translated("finish", path):
                stream.close()
        except BaseException:
            with suppress(OSError):
                stream.close()
            with suppress(LakeError):
                self.delete(path)
            raise

    def create(self, path: str, content: bytes) -> bool:
        """Publish a file by moving it into its directory; return False if the path is taken.

        The first call of a process tests that the file system refuses a taken name, and raises
        ``UnsupportedError`` otherwise.
        """
        self.prove_creation(path)
        if self._type(path) is not FileType.NotFound:
            return False
        return self.move_into_place(path, content)

    def prove_creation(self, path: str) -> None:
        """Raise ``UnsupportedError`` if the file system's rename may replace an existing file.

        The first call tests the file system, and this process keeps the result.
        """
        require_proof(_Raw(self), self._identity(path), path, self._ids)

    def move_into_place(self, path: str, content: bytes) -> bool:
        """Publish a file by the rename alone; return False if the path is taken.

        Neither the file system nor ``path`` is checked before. A missing table directory raises
        ``NotFoundError``.
        """
        workshop = temporary_sibling(_absolute(path), self._ids())
        prepared = f"{workshop}/{path.rpartition('/')[2]}"
        try:
            with self._translated("publish", path):
                if not self._has_place(path):
                    raise vanished(self.uri(path))
                self._system.create_dir(workshop, recursive=True)
                self._write(prepared, content)
            return self._moved(prepared, path, content)
        finally:
            # Readers ignore a leftover, so it must not fail the publication.
            with suppress(OSError):
                self._system.delete_dir(workshop)

    def overwrite(self, path: str, content: bytes) -> None:
        """Create or replace a file.

        While a file is replaced, a reader may find no file, but never an incomplete one.

        A directory at ``path`` raises ``AlreadyExistsError``. On a file system whose rename may
        replace a file, ``LockedCreation`` publishes snapshots with this method.
        """
        if self.directory_exists(path):  # the finished file would be moved into it
            raise AlreadyExistsError(
                f"Cannot write {self.uri(path)}: it is a directory. Choose another name."
            )
        prepared = temporary_sibling(_absolute(path), self._ids())
        try:
            with self._translated("write", path):
                self._system.create_dir(_parent(path), recursive=True)
                self._write(prepared, content)
                self._system.move(prepared, _absolute(path))
        except BaseException:
            # Also ensures that a rename still in progress finds nothing to move.
            with suppress(OSError):
                self._system.delete_file(prepared)
            raise

    def exists(self, path: str) -> bool:
        """Return True if a file (not a directory) is at ``path``."""
        return self._type(path) is FileType.File

    def list(self, path: str) -> builtins.list[FileInfo]:
        """Return the direct children of a directory, sorted by name; empty if it does not exist."""
        if not self.directory_exists(path):
            return []
        with self._translated("list", path):
            found = self._system.get_file_info(FileSelector(_absolute(path), allow_not_found=True))
        infos = [_file_info(path, info) for info in found if info.type is not FileType.NotFound]
        return sorted(infos, key=lambda info: info.name)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        with self._translated("make directory", path):
            self._system.create_dir(_absolute(path), recursive=True)

    def directory_exists(self, path: str) -> bool:
        """Return True if ``path`` is a directory, even if it is empty."""
        return self._type(path) is FileType.Directory

    def delete(self, path: str) -> None:
        """Delete one file; do nothing if it is missing."""
        if self.exists(path):
            try:
                with self._translated("delete", path):
                    self._system.delete_file(_absolute(path))
            except UnavailableError:
                if self.exists(path):  # otherwise another process has deleted it
                    raise

    def delete_directory(self, path: str) -> None:
        """Delete a directory with its content; do nothing if it is missing."""
        refuse_root(path, self.uri(path))
        if self.directory_exists(path):
            try:
                with self._translated("delete directory", path):
                    self._system.delete_dir(_absolute(path))
            except UnavailableError:
                if self.directory_exists(path):  # otherwise another process has deleted it
                    raise

    def rename_directory(self, old: str, new: str) -> None:
        """Rename a directory in one step; see ``MovesDirectories``."""
        if not self.directory_exists(old):
            raise NotFoundError(
                f"Cannot rename {self.uri(old)}: no such directory. Check the path."
            )
        inside = f"{new}/{old.rpartition('/')[2]}"
        is_nested = self.directory_exists(f"{old}/{inside.rpartition('/')[2]}")
        if self._type(new) is not FileType.NotFound:
            raise self._taken(new)
        with self._translated(f"rename {self.uri(old)} to", new):
            self._system.create_dir(_parent(new), recursive=True)
            self._system.move(_absolute(old), _absolute(new))
            # HDFS moves into a directory that was created after the check.
            if not is_nested and self.directory_exists(inside):
                self._system.move(_absolute(inside), _absolute(old))
                raise self._taken(new)

    @property
    def _system(self) -> Any:
        with self._connecting:
            if self._connected is None:
                self._connected = self._connect()
            return self._connected

    def _has_place(self, path: str) -> bool:
        """Return True if the parent directory of ``path`` exists, or can be created in an existing
        directory.

        A rename of the table after this check is not detected here, so the publisher checks the
        table again afterwards.
        """
        above = _parent(path).rpartition("/")[0]
        return not above or self.directory_exists(_parent(path)) or self.directory_exists(above)

    def _identity(self, path: str) -> str:
        """Return the key under which the result of ``prove_creation`` is kept.

        With ``viewfs`` each directory may be on another file system, so each has its own key.
        """
        return self.uri(_parent(path)) if self.scheme == "viewfs" else self._authority

    def _moved(self, prepared: str, path: str, content: bytes) -> bool:
        try:
            with self._translated("publish", path):
                self._system.move(prepared, _parent(path))
        except UnavailableError:
            # HDFS refused, or did the rename and the answer was lost. The content at ``path``
            # decides, unless it equals ours.
            if self.exists(path) and self.read(path, LARGE_FILE) != content:
                return False
            raise
        return True

    def _write(self, path: str, content: bytes) -> None:
        with self._system.open_output_stream(path) as stream:
            stream.write(content)

    def _taken(self, path: str) -> AlreadyExistsError:
        return AlreadyExistsError(
            f"Cannot rename to {self.uri(path)}: the name is taken. Choose another name."
        )

    def _require_file(self, operation: str, path: str) -> None:
        if self._type(path) is not FileType.File:
            raise NotFoundError(
                f"Cannot {operation} {self.uri(path)}: no such file. Check the path."
            )

    def _type(self, path: str) -> FileType:
        with self._translated("look for", path):
            found = self._system.get_file_info(_absolute(path)).type
            # Arrow reports "not found" also if HDFS does not answer: the root always exists.
            if found is FileType.NotFound and not self._answers():
                raise OSError("the file system does not answer")
            return found

    def _answers(self) -> bool:
        return bool(self._system.get_file_info("/").type is FileType.Directory)

    @contextmanager
    def _translated(self, operation: str, path: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            reason = str(error).split("\n")[0].rstrip(". ")
            raise UnavailableError(
                f"Cannot {operation} {self.uri(path)}: {reason}."
                " Check the file system and the permissions of this user, then retry."
            ) from error


class _Raw:
    """A ``RenameStorage`` for ``require_proof``; its ``create`` does not test the storage again."""

    def __init__(self, storage: RenameStorage) -> None:
        self.uri = storage.uri
        self.create = storage.move_into_place
        self.read = storage.read
        self.delete = storage.delete


def _absolute(path: str) -> str:
    return f"/{path.strip('/')}"


def _parent(path: str) -> str:
    parent = _absolute(path).rpartition("/")[0]
    if not parent:
        raise InvalidRequestError(
            "Cannot write into the root of the file system: choose a directory below it."
        )
    return parent


def _file_info(directory: str, info: Any) -> FileInfo:
    is_directory = info.type is FileType.Directory
    name = info.base_name
    modified = (info.mtime_ns or 0) // 1_000_000
    size = 0 if is_directory else info.size
    return FileInfo(f"{directory}/{name}", name, is_directory, size, modified)
