# SPDX-License-Identifier: Apache-2.0
"""Copies a directory to a new name, so that the old directory can be deleted afterwards.

A storage that cannot move directories also cannot lock the new name. So every file that is already
in the new directory is compared before it counts as a copy, and files of other writers are kept.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping

from lakeformat.errors import AlreadyExistsError, CommitConflictError, LakeError, NotFoundError
from lakeformat.storage.base import LARGE_FILE, FileInfo, Storage
from lakeformat.storage.digest import content_digest
from lakeformat.types.sentence import sentence

__all__ = ["MOVE_MARK", "copy_directory"]

_log = logging.getLogger(__name__)
_CHUNK = 8 << 20

MOVE_MARK = ".moving.tmp"
"""The file in a new directory that names the old directory of an unfinished move.

A complete move deletes this file.
"""


def copy_directory(storage: Storage, old: str, new: str, *, last: str) -> None:
    """Copy every file below ``old`` to ``new``; return once ``new`` has an equal copy of each.

    The files below the subdirectory ``last`` are copied at the end, each in one write, when all
    files that they refer to exist. If an interrupted attempt left a copy of a file outside of
    ``last``, the copy is reused if it equals its original, and replaced otherwise.

    Raise ``AlreadyExistsError`` if another writer created files below ``new``, and
    ``CommitConflictError`` if ``old`` changes meanwhile. In both cases the copies of this call are
    deleted, and ``old`` is kept. Raise ``NotFoundError`` if another call of this move, or a drop,
    has begun to delete ``old``; then all copies are kept.
    """
    copying = _Copying(storage, old, new, last)
    files, there = _content(storage, old), _content(storage, new)
    strange = sorted(name for name in there if name not in files and not _is_temporary(name))
    try:
        if strange:
            copying.require_whole(files, there, strange[0])
            return
        copying.require_ours()
        copying.copy(files)
    except (AlreadyExistsError, CommitConflictError):
        copying.require_unfinished(files)
        copying.undo()
        raise


class _Copying:
    """One attempt to copy a directory, with the files that it wrote."""

    def __init__(self, storage: Storage, old: str, new: str, last: str) -> None:
        self._storage = storage
        self._old = old
        self._new = new
        self._last = last
        self._made: list[str] = []

    def require_whole(
        self, files: Mapping[str, FileInfo], there: Mapping[str, FileInfo], strange: str
    ) -> None:
        """Raise ``AlreadyExistsError`` unless the new directory has an equal copy of every old
        file.

        ``strange`` is a file that exists only in the new directory; the message names it. If every
        old file has an equal copy, ``strange`` counts as a copy of an earlier attempt, which has
        already deleted the original.
        """
        if not all(name in there and self._is_same(name) for name in files):
            raise self._taken(strange, "but not in the old directory")

    def require_ours(self) -> None:
        """Raise ``AlreadyExistsError`` if another writer created a file below ``last`` in the new
        directory.
        """
        for path in _files(self._storage, f"{self._new}/{self._last}"):
            name = f"{self._last}/{path}"
            if _is_temporary(name):
                continue
            if not self._storage.exists(f"{self._old}/{name}") or not self._is_same(name):
                raise self._taken(name, "and another writer created it", may_be_ours=False)

    def copy(self, files: Mapping[str, FileInfo]) -> None:
        inside = f"{self._last}/"
        for name in files:
            if not name.startswith(inside):
                self._copy(name)
        self._require_unchanged(files)
        for name in files:
            if name.startswith(inside):
                self._publish(name)
        self._require_unchanged(files)

    def require_unfinished(self, files: Mapping[str, FileInfo]) -> None:
        """Raise ``NotFoundError`` if another call of this move, or a drop of the old table, has
        begun to delete the old files.

        ``files`` are the files that the old directory had when this attempt began. The deletion
        has begun if the old directory has lost a file below ``last`` since then, but the new
        directory has all files below ``last``. The new directory may then have the only copies.
        """
        storage, inside = self._storage, f"{self._last}/"
        needed = {name for name in files if name.startswith(inside)}
        if needed <= _content(storage, self._old).keys():
            return
        if needed <= _content(storage, self._new).keys():
            raise NotFoundError(
                f"Cannot move {storage.uri(self._old)} to {storage.uri(self._new)}: another call of"
                " this move, or a drop of the old table, is deleting the old directory. All files"
                " in the new directory are kept. Wait until that move or drop has ended. If the old"
                f" directory or {storage.uri(f'{self._new}/{MOVE_MARK}')} still exists after that,"
                " repeat this move. If the old table was dropped, drop the new table, too."
            )

    def undo(self) -> None:
        """Delete the copies of this attempt, newest first.

        The files below ``last`` make the directory a table. They were copied last, so they are
        deleted first.
        """
        for path in reversed(self._made):
            try:
                self._storage.delete(path)
            except LakeError as error:
                _log.warning(
                    "could not delete %s, a copy of a cancelled move: %s You can delete the copy",
                    self._storage.uri(path),
                    sentence(error),
                )

    def _copy(self, name: str) -> None:
        try:
            self._write(name)
        except AlreadyExistsError:
            if self._is_same(name):
                return
            # Torn by a crash, or older than the source; if a table exists by now, another writer's
            # file.
            self.require_ours()
            self._storage.delete(f"{self._new}/{name}")
            self._write(name)

    def _write(self, name: str) -> None:
        target = f"{self._new}/{name}"
        with (
            self._storage.open_input(f"{self._old}/{name}") as source,
            self._storage.open_output(target) as sink,
        ):
            shutil.copyfileobj(source, sink, _CHUNK)
        self._made.append(target)

    def _publish(self, name: str) -> None:
        target = f"{self._new}/{name}"
        content = self._storage.read(f"{self._old}/{name}", LARGE_FILE)
        if self._storage.create(target, content):
            self._made.append(target)
        elif self._storage.read(target, LARGE_FILE) != content:
            raise self._taken(name, "but with other content")

    def _require_unchanged(self, files: Mapping[str, FileInfo]) -> None:
        if _content(self._storage, self._old) != files:
            raise CommitConflictError(
                f"Cannot move {self._storage.uri(self._old)}: another writer changed it during the"
                " copy. Nothing was moved: stop its writers, then repeat the call."
            )

    def _is_same(self, name: str) -> bool:
        source, target = (f"{directory}/{name}" for directory in (self._old, self._new))
        return _size(self._storage, source) == _size(self._storage, target) and content_digest(
            self._storage, source
        ) == content_digest(self._storage, target)

    def _taken(self, name: str, why: str, *, may_be_ours: bool = True) -> AlreadyExistsError:
        storage = self._storage
        more = (
            " Or, if an earlier attempt of this move left the file, delete the new directory and"
            " repeat the move."
        )
        return AlreadyExistsError(
            f"Cannot move {storage.uri(self._old)} to {storage.uri(self._new)}:"
            f" {storage.uri(f'{self._new}/{name}')} exists, {why}. The old directory is"
            f" unchanged. Choose another name.{more if may_be_ours else ''}"
        )


def _content(storage: Storage, directory: str) -> dict[str, FileInfo]:
    files = _files(storage, directory)
    files.pop(MOVE_MARK, None)
    return files


def _files(storage: Storage, directory: str) -> dict[str, FileInfo]:
    """Return every file below a directory, by its path relative to that directory."""
    found: dict[str, FileInfo] = {}
    for info in storage.list(directory):
        if info.is_directory:
            below = _files(storage, info.path)
            found.update({f"{info.name}/{name}": file for name, file in below.items()})
        else:
            found[info.name] = info
    return found


def _is_temporary(name: str) -> bool:
    """Return True for the path of a temporary file, which a writer may leave when it crashes."""
    return any(part.startswith(".") and part.endswith(".tmp") for part in name.split("/"))


def _size(storage: Storage, path: str) -> int:
    with storage.open_input(path) as stream:
        return stream.seek(0, 2)
