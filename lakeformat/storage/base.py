# SPDX-License-Identifier: Apache-2.0
"""All access to bytes: the promises of every storage to the rest of the library.

A path is a plain string with ``/`` between its segments, without a scheme and without a trailing
slash; ``open_storage`` returns the path of an address. A path names a file or a directory, never
both. Directories need not exist before a file is written into them (``create`` makes only the
parent directory of its file). A directory may disappear when its last file is deleted.

Every method translates the errors of its backend. ``NotFoundError``: the file does not exist; a
directory is not a file. ``AlreadyExistsError``: the name is taken. ``UnavailableError``: any other
failure outside the library. "Durable" means: the content survives a power cut after the method has
returned.

``lakeformat.testing.storage_suite`` tests a storage.
"""

from __future__ import annotations

import builtins
from contextlib import AbstractContextManager
from dataclasses import dataclass
from posixpath import normpath
from typing import IO, Protocol

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError

__all__ = [
    "LARGE_FILE",
    "SMALL_FILE",
    "FileInfo",
    "Storage",
    "TooLargeError",
    "refuse_root",
    "temporary_sibling",
    "too_large",
    "vanished",
]

SMALL_FILE = 16 << 20
"""The largest size in bytes of a file of JSON or text; a schema of 100,000 columns is smaller."""
LARGE_FILE = 1 << 30
"""The largest size in bytes of a file that lists files, such as a manifest of millions of files."""


class TooLargeError(CorruptTableError):
    """The file has more bytes than the ``limit`` of ``Storage.read``; it was not read."""

    size = 0
    """The size of the file in bytes."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a directory listing."""

    path: str
    """The path of the entry: the path of the listed directory, a slash and ``name``."""
    name: str
    is_directory: bool
    size: int
    """The size in bytes; 0 for a directory."""
    modified_millis: int
    """The time of the last change, in epoch milliseconds; 0 if unknown, as for directories of
    object stores.
    """
    etag: str | None = None
    """The ETag of a file in an object store; None for directories and on other storages."""


class Storage(Protocol):
    """Reads, writes, lists and deletes files; ``create`` publishes a file exactly once."""

    @property
    def scheme(self) -> str:
        """The URI scheme of this storage, such as ``file``."""
        ...

    def uri(self, path: str) -> str:
        """Return the address of ``path``; ``open_storage`` opens it again.

        Only storages made for tests may have addresses that cannot be opened.
        """
        ...

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        """Return the whole content of a file of at most ``limit`` bytes.

        For a larger file, raise ``TooLargeError`` without reading more than ``limit`` bytes.
        """
        ...

    def open_input(self, path: str) -> IO[bytes]:
        """Open a seekable stream on a file, an Arrow stream if possible; the caller closes it."""
        ...

    def open_output(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Open a stream into the new file ``path``, an Arrow stream if possible.

        The caller chooses a name that no other writer uses. Leaving the context without an
        exception makes the content durable. A file that exists keeps its content:
        ``AlreadyExistsError`` is raised, on opening or at the latest on leaving. An exception or a
        crash may leave a torn file, so metadata may name the file only after the context is left.
        """
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Publish ``content`` as ``path``: whole, durable, and only if the path is free.

        Returns False, and changes nothing, if the path is taken. Any number of processes may race:
        at most one gets True. If ``UnavailableError`` has ``nothing_was_written`` set to True,
        nothing was published. After any other ``UnavailableError`` the outcome is unknown: the
        caller reads the path to find out. A crash may leave the temporary file
        ``temporary_sibling``.

        A storage with real directories creates only the parent directory of the file, such as
        ``snapshot`` in a new table. If a directory above the parent is missing, it raises
        ``NotFoundError`` (made by ``vanished``) and writes nothing. So a writer that still uses the
        old path of a renamed or dropped table does not recreate it with a single snapshot.
        """
        ...

    def overwrite(self, path: str, content: bytes) -> None:
        """Write a small file durably, and replace an existing one.

        During the write or after a crash, a reader may find the old, the new or no content. A crash
        may also leave the temporary file ``temporary_sibling``.
        """
        ...

    def exists(self, path: str) -> bool:
        """Return True if a file (not a directory) is at ``path``."""
        ...

    def list(self, path: str) -> builtins.list[FileInfo]:
        """Return the direct children of a directory, sorted by name; empty if it does not exist."""
        ...

    def make_directory(self, path: str) -> None:
        """Create an empty directory with its parents; do nothing if it exists."""
        ...

    def directory_exists(self, path: str) -> bool:
        """Return True if ``path`` is a directory, even if it is empty."""
        ...

    def delete(self, path: str) -> None:
        """Delete one file; do nothing if it is missing. A power cut may restore the file."""
        ...

    def delete_directory(self, path: str) -> None:
        """Delete a directory with its content, durably; do nothing if it is missing.

        A crash or an error may leave any part of it; call again to delete the rest. Raises
        ``InvalidRequestError`` for the root of a storage, so that no call deletes a whole bucket or
        disk.
        """
        ...


def too_large(uri: str, size: int, limit: int) -> TooLargeError:
    """Return the error for a file over the size limit of its kind."""
    error = TooLargeError(
        f"{uri} has {size} bytes, and a file of its kind has at most {limit}: it is damaged or "
        "forged, and was not read. Restore it from a backup, or move it out of the directory "
        "if it does not belong there"
    )
    error.size = size
    return error


def refuse_root(path: str, uri: str) -> None:
    """Raise ``InvalidRequestError`` if the directory to delete, ``path``, is the root of its
    storage.

    ``uri`` names the directory in the message.
    """
    if not normpath(f"/{path}").strip("/"):
        raise InvalidRequestError(
            f"Cannot delete directory {uri}: it is the root of its storage, and everything in it"
            " would be lost. Name a directory below it."
        )


def vanished(uri: str) -> NotFoundError:
    """Return the error that ``create`` raises if a directory above its file's parent is missing."""
    return NotFoundError(
        f"Cannot publish {uri}: its directory does not exist any more. The table was"
        " renamed or dropped meanwhile, and nothing was published. If it was renamed, open it under"
        " its new name."
    )


def temporary_sibling(path: str, unique: str) -> str:
    """Return the path of the temporary file for ``path``: ``.<name>.<unique>.tmp`` in the same
    directory, as in Paimon.
    """
    parent, slash, name = path.rpartition("/")
    return f"{parent}{slash}.{name}.{unique}.tmp"
