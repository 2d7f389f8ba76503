# SPDX-License-Identifier: Apache-2.0
"""Files on a local or mounted POSIX file system, published by hard link.

``rename`` replaces its target, so it cannot decide a race between processes. ``link`` fails if the
target exists, on every POSIX file system and on NFS.
"""

from __future__ import annotations

import builtins
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO
from urllib.parse import quote

import pyarrow as pa

from lakeformat.environment import SYSTEM
from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.storage.base import (
    SMALL_FILE,
    FileInfo,
    refuse_root,
    temporary_sibling,
    too_large,
    vanished,
)
from lakeformat.storage.creation_proof import REMEDY
from lakeformat.storage.links import FollowsNoLinks, refuse_link, refuse_way_out
from lakeformat.storage.os_errors import DISK_ERRORS, reading, translated
from lakeformat.storage.turns import directory_turn

__all__ = ["LocalStorage", "make_durable_directory", "sync_directory"]

_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV}
)


class LocalStorage(FollowsNoLinks):
    """A storage whose paths are absolute local paths; any number of processes may share it.

    ``ids`` gives the unique part of temporary names. With a ``root``, the storage uses only paths
    below that directory and refuses symbolic links there. The root itself and the directories above
    it may be links.
    """

    def __init__(self, *, ids: Callable[[], str] = SYSTEM.new_id, root: str | None = None) -> None:
        self._ids = ids
        self._root = root

    def within(self, root: str) -> LocalStorage:
        """Return the storage of one directory; see ``FollowsNoLinks``."""
        return LocalStorage(ids=self._ids, root=root)

    def is_link(self, path: str) -> bool:
        """Return True if a path is a symbolic link."""
        return os.path.islink(path)

    def require_no_link(self, path: str) -> None:
        """Raise ``InvalidRequestError`` if a path is, or passes through, a link below the root."""
        self._check(path, whole=True)

    @property
    def scheme(self) -> str:
        """Always ``file``."""
        return "file"

    def uri(self, path: str) -> str:
        """Return the ``file://`` URI of an absolute path."""
        return "file://" + quote(os.fsencode(path), safe="/=:@,+")

    def turn(
        self, directory: str, sleep_seconds: Callable[[float], None]
    ) -> AbstractContextManager[None]:
        """Return a context manager that waits for other local writers in ``directory``."""
        return directory_turn(directory, sleep_seconds)

    def read(self, path: str, limit: int = SMALL_FILE) -> bytes:
        """Return a file's content; raise ``TooLargeError`` if it has more than ``limit`` bytes."""
        self._check(path)
        with reading("read", path), open(path, "rb", opener=self._opener) as stream:
            if (size := os.fstat(stream.fileno()).st_size) > limit:
                raise too_large(self.uri(path), size, limit)
            return stream.read()

    def open_input(self, path: str) -> IO[bytes]:
        """Open a ``pyarrow.OSFile``, which Arrow reads without Python."""
        self._check(path)
        with reading("open", path):
            if stat.S_ISDIR(self._mode_to_open(path)):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            stream: IO[bytes] = pa.OSFile(path, "rb")
            return stream

    @contextmanager
    def open_output(self, path: str) -> Iterator[IO[bytes]]:
        """Open a ``pyarrow.OSFile`` into a new file, which is durable when the block ends without
        an error.
        """
        self._check(path)
        with translated("create", path):
            make_durable_directory(os.path.dirname(path))
            # Open until the end: this descriptor sees every write-back error since the file's
            # creation.
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            with translated("open", path):
                stream = pa.OSFile(path, "wb")
            with _disk_errors_translated(path), stream:
                yield stream
            with translated("finish", path):
                os.fsync(descriptor)
                sync_directory(os.path.dirname(path))
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        finally:
            os.close(descriptor)

    def create(self, path: str, content: bytes) -> bool:
        """Publish a file by a hard link to a finished file; return False if ``path`` is taken."""
        self._check(path)
        with translated("publish", path):
            if os.path.lexists(path):
                return False
            temporary = self._prepare(path, content)
            try:
                won = _link(temporary, path)
            finally:
                # Readers ignore a leftover, so it must not fail the publication.
                with suppress(OSError):
                    os.unlink(temporary)
            if won:
                sync_directory(os.path.dirname(path))
            return won

    def overwrite(self, path: str, content: bytes) -> None:
        """Create or replace a file atomically: readers find the old or the new content."""
        self._check(path)
        with translated("overwrite", path):
            make_durable_directory(os.path.dirname(path))
            temporary = self._write_temporary(path, content)
            try:
                os.replace(temporary, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            sync_directory(os.path.dirname(path))

    def exists(self, path: str) -> bool:
        """Return True if a file (not a directory) is at ``path``."""
        mode = self._mode(path)
        return mode is not None and not stat.S_ISDIR(mode)

    def list(self, path: str) -> builtins.list[FileInfo]:
        """Return the direct children of a directory, sorted by name; empty if it does not exist.

        A link below the root of the storage is listed as a file, even if it points to a directory.
        """
        self._check(path, whole=True)
        follow = self._root is None
        with translated("list", path):
            try:
                with os.scandir(path) as entries:
                    infos = [_file_info(path, entry, follow) for entry in entries]
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted((info for info in infos if info), key=lambda info: info.name)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, durably."""
        self._check(path, whole=True)
        with translated("make directory", path):
            make_durable_directory(path)

    def directory_exists(self, path: str) -> bool:
        """Return True if ``path`` is a directory, even if it is empty."""
        mode = self._mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def delete(self, path: str) -> None:
        """Delete one file; do nothing if it is missing. A power cut may restore the file."""
        self._check(path)
        with translated("delete", path), suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)

    def delete_directory(self, path: str) -> None:
        """Delete a directory with its content, durably; do nothing if it is missing.

        A symbolic link is deleted, its target is kept.
        """
        refuse_root(path, self.uri(path))
        self._check(path)
        with translated("delete directory", path):
            if os.path.islink(path):
                os.unlink(path)
                sync_directory(os.path.dirname(path))
                return
            while self.directory_exists(path):
                # Another process may delete or write here too: a missing entry is not an error.
                with suppress(FileNotFoundError):
                    shutil.rmtree(path)
                    sync_directory(os.path.dirname(path))

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory if it is empty; return False if it has content, otherwise True."""
        refuse_root(path, self.uri(path))
        self._check(path, whole=True)
        with translated("delete directory", path):
            try:
                if os.path.islink(path) and not os.listdir(path):
                    os.unlink(path)
                else:
                    os.rmdir(os.path.realpath(path))
            except FileNotFoundError:
                return True
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return False
            sync_directory(os.path.dirname(path))
        return True

    def rename_directory(self, old: str, new: str) -> None:
        """Rename a directory in one step; see ``MovesDirectories``."""
        with translated(f"rename {old} to", new):
            if not self.directory_exists(old):
                raise NotFoundError(f"Cannot rename {old}: no such directory. Check the path.")
            make_durable_directory(os.path.dirname(new))
            try:
                os.rename(old, new)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from error
                raise
            for parent in {os.path.dirname(old), os.path.dirname(new)}:
                sync_directory(parent)

    def _check(self, path: str, *, whole: bool = False) -> None:
        if self._root is not None:
            refuse_way_out(self._root, path, whole=whole)

    def _opener(self, path: str, flags: int) -> int:
        if self._root is None:
            return os.open(path, flags)
        try:
            return os.open(path, flags | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno == errno.ELOOP:
                refuse_link(self._root, path)
            raise

    def _mode_to_open(self, path: str) -> int:
        """Return the ``st_mode`` of the file at ``path``.

        If the storage has a root, raise ``InvalidRequestError`` for a link.
        """
        if self._root is None:
            return os.stat(path).st_mode
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            refuse_link(self._root, path)
        return mode

    def _mode(self, path: str) -> int | None:
        """Return the ``st_mode``, None for a missing path; links below a root are not followed."""
        self._check(path)
        with translated("look for", path):
            try:
                return os.stat(path, follow_symlinks=path == self._root or not self._root).st_mode
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _prepare(self, path: str, content: bytes) -> str:
        """Write ``content`` to a temporary file for ``path``, and return the path of that file.

        If this fails, nothing was published.
        """
        with translated("publish", path, writes_nothing=True):
            try:
                make_durable_directory(os.path.dirname(path), levels=1)
                return self._write_temporary(path, content)
            except FileNotFoundError:  # the directory was moved or deleted meanwhile
                raise vanished(path) from None

    def _write_temporary(self, path: str, content: bytes) -> str:
        temporary = temporary_sibling(path, self._ids())
        # Not tempfile: its files are private to one user; a published file follows the umask.
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary


def _link(temporary: str, path: str) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        # NFS repeats a request whose answer was lost: then the existing link is our own.
        return os.stat(temporary).st_nlink > 1
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        raise UnsupportedError(
            f"Cannot publish {path}: its file system has no hard links"
            f" ({os.strerror(error.errno)}), so it cannot decide a race between"
            " writers. Move the warehouse to ext4, XFS, NFS or another POSIX file system; or"
            f" {REMEDY}"
        ) from error
    return True


def _file_info(directory: str, entry: os.DirEntry[str], follow: bool) -> FileInfo | None:
    try:
        status = entry.stat(follow_symlinks=follow)
    except FileNotFoundError:
        return None  # deleted since the directory was read
    is_directory = stat.S_ISDIR(status.st_mode)
    return FileInfo(
        path=f"{directory}/{entry.name}",
        name=entry.name,
        is_directory=is_directory,
        size=0 if is_directory else status.st_size,
        modified_millis=status.st_mtime_ns // 1_000_000,
    )


@contextmanager
def _disk_errors_translated(path: str) -> Iterator[None]:
    """Translate an error of the disk to a ``LakeError``; errors of the caller pass unchanged."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        with translated("write", path):
            raise


_NO_DIRECTORY_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})


def make_durable_directory(path: str, *, levels: int | None = None) -> None:
    """Create a directory and its parents; each is durable before the next one is created.

    If more than ``levels`` directories are missing, raise ``FileNotFoundError`` and create nothing;
    ``levels=None`` sets no limit. A relative path raises ``InvalidRequestError``; a file in the
    path raises ``NotADirectoryError``.
    """
    if not path.startswith("/"):
        raise InvalidRequestError(
            f"local paths must be absolute, got {path!r}: pass it to open_storage, which makes it "
            "absolute"
        )
    missing: list[str] = []
    while not os.path.isdir(path):
        if len(missing) == levels and not os.path.lexists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        try:
            os.mkdir(directory)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", directory) from None
        except FileNotFoundError as error:
            if os.path.isdir(os.path.dirname(directory)):  # such as /proc, which takes no names
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory) from error
            raise
        # Also if another process created it: that process may not have synced it yet.
        sync_directory(os.path.dirname(directory))


def sync_directory(path: str) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a directory: their server keeps its entries.
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)
