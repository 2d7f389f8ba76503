"""The only door to bytes: what every storage promises to the rest of the library.

A path is a plain string with ``/`` between its segments, without a scheme and without a
trailing slash; ``open_storage`` gives out the first one. A path names a file or a directory,
never both. Directories need not be made before a file is written into them (``create`` makes
the last one only), and whether one outlives its last file is up to the storage.

Every method translates the errors of its backend: ``NotFoundError`` when no file is there (a
directory is no file), ``AlreadyExistsError`` when the name is taken, ``UnavailableError`` for
everything that went wrong outside the library. "Durable" means: still there after a power cut
that happens once the method has returned.

``lakeformat.testing.storage_suite`` turns each sentence below into a test, but for the refusal of
the root: where it fails, all is gone.
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
"""The most bytes of a file of JSON or text: a schema of 100,000 columns has fewer."""
LARGE_FILE = 1 << 30
"""The most bytes of a file that lists others, such as a manifest: it has room for millions."""


class TooLargeError(CorruptTableError):
    """A file is larger than one of its kind can be; it was not read."""

    size = 0
    """The bytes it has."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a directory listing."""

    path: str
    """The path that was listed, a slash, and ``name``: equal to the string a caller joins."""
    name: str
    is_directory: bool
    size: int
    """Bytes; 0 for a directory."""
    modified_millis: int
    """Last change in epoch milliseconds; 0 where none is kept (directories of object stores)."""


class Storage(Protocol):
    """Reads and writes whole objects; publication is ``create``."""

    @property
    def scheme(self) -> str:
        """The URI scheme of this storage, such as ``file``."""
        ...

    def uri(self, path: str) -> str:
        """The address of ``path`` for people and programs; ``open_storage`` leads back to it.

        Only storages that live in one test alone have addresses that lead nowhere.
        """
        ...

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        """The whole content of a file of at most ``limit`` bytes.

        A larger one is refused (``TooLargeError``), and takes no more memory than that.
        """
        ...

    def open_input(self, path: str) -> IO[bytes]:
        """A seekable stream over a file, an Arrow stream where possible; the caller closes it."""
        ...

    def open_output(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """A stream into a new file whose name nobody else uses, an Arrow stream where possible.

        Leaving the context without an exception makes the content durable. A taken name is
        refused with ``AlreadyExistsError``, when opening or at the latest when leaving, and keeps
        its content. With an exception, or a crash, a torn file may stay behind: nothing may
        refer to it. What readers see before the context is left is up to the storage.
        """
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Publish ``content`` as ``path``, whole, durable and only if nothing is there.

        Returns False, and changes nothing, if the path is taken. Any number of processes
        may race: exactly one gets True. ``UnavailableError`` leaves the outcome open, unless
        ``nothing_was_written``: the caller reads back before it decides. A crash may leave a
        ``temporary_sibling`` behind.

        A storage that keeps directories makes the last one on the way, as ``snapshot`` in a new
        table, and no other: ``NotFoundError`` (``vanished``), and nothing is written, if those
        before it are not there. Else a table that was renamed or dropped a moment ago would
        come back as the one snapshot of a writer who does not know it yet.
        """
        ...

    def overwrite(self, path: str, content: bytes) -> None:
        """Write a small file, durably, over whatever is there.

        A reader, or a crash half-way, may meet the old, the new or no content at all; a crash
        may also leave a ``temporary_sibling`` behind.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether a file (not a directory) is at ``path``."""
        ...

    def list(self, path: str) -> builtins.list[FileInfo]:
        """The direct children of a directory, sorted by name; empty when it does not exist."""
        ...

    def make_directory(self, path: str) -> None:
        """Make an empty directory exist, with its parents; one that exists already is fine."""
        ...

    def directory_exists(self, path: str) -> bool:
        """Whether ``path`` is a directory, an empty one included."""
        ...

    def delete(self, path: str) -> None:
        """Remove one file; one that is already gone is fine. A power cut may bring it back."""
        ...

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything in it, durably; one already gone is fine.

        A crash half-way, or an error, leaves any part of it; calling again finishes the work.
        The root of a storage is refused (``refuse_root``): nobody means a whole bucket or disk.
        """
        ...


def too_large(uri: str, size: int, limit: int) -> TooLargeError:
    """The error about a file with more bytes than are read of one of its kind."""
    error = TooLargeError(
        f"{uri} has {size} bytes, and a file of its kind has at most {limit}: it is damaged or "
        "forged, and was not read. Restore it from a backup, or move it out of the directory "
        "if it does not belong there"
    )
    error.size = size
    return error


def refuse_root(path: str, uri: str) -> None:
    """Raise if a directory about to be removed is everything a storage has."""
    if not normpath(f"/{path}").strip("/"):
        raise InvalidRequestError(
            f"Cannot delete directory {uri}: it is the root of its storage, with everything of"
            " everybody in it. Name a directory below it."
        )


def vanished(uri: str) -> NotFoundError:
    """What ``create`` raises where more than the last directory on the way is missing."""
    return NotFoundError(
        f"Cannot publish {uri}: the directory it belongs to is not there any more. Its table was"
        " renamed or dropped meanwhile, and nothing was published: open it under its present name."
    )


def temporary_sibling(path: str, unique: str) -> str:
    """Where ``path`` is prepared before it is published: Paimon's ``.<name>.<unique>.tmp``."""
    parent, slash, name = path.rpartition("/")
    return f"{parent}{slash}.{name}.{unique}.tmp"
