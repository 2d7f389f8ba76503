"""Copying a directory onto a name of its own, so that the old one may be removed afterwards.

No storage that needs this can keep others away from the new name. So nothing that lies there is
believed to be ours without reading it, and whatever another has made there stays as it is.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping

from lakeformat.errors import AlreadyExistsError, CommitConflictError, LakeError
from lakeformat.storage.base import LARGE_FILE, FileInfo, Storage
from lakeformat.storage.digest import content_digest

__all__ = ["MOVE_MARK", "copy_directory"]

_log = logging.getLogger(__name__)
_CHUNK = 8 << 20

MOVE_MARK = ".moving.tmp"
"""In a new directory, says which one is being moved there; gone when that is done."""


def copy_directory(storage: Storage, old: str, new: str, *, last: str) -> None:
    """Return once every file below ``old`` is below ``new`` too, with the same content.

    The small files below the child ``last`` come at the end, and each of them appears whole:
    what they say about the directory is then true. Files of an earlier try that a crash has
    stopped are taken over, or copied again where they differ. ``AlreadyExistsError`` if another
    has made files below ``new``, ``CommitConflictError`` if ``old`` changes meanwhile: what this
    call has copied is then removed again, and ``old`` is as it was.
    """
    copying = _Copying(storage, old, new, last)
    files, there = _content(storage, old), _content(storage, new)
    strange = sorted(name for name in there if name not in files and not _is_temporary(name))
    if strange:
        copying.require_whole(files, there, strange[0])
        return
    copying.require_ours()
    try:
        copying.copy(files)
    except (AlreadyExistsError, CommitConflictError):
        copying.undo()
        raise


class _Copying:
    """One try; remembers what it has made."""

    def __init__(self, storage: Storage, old: str, new: str, last: str) -> None:
        self._storage = storage
        self._old = old
        self._new = new
        self._last = last
        self._made: list[str] = []

    def require_whole(
        self, files: Mapping[str, FileInfo], there: Mapping[str, FileInfo], strange: str
    ) -> None:
        """Accept more files in the new place only if the old one has nothing else to give.

        So it is when an earlier try has copied all and was stopped while it removed.
        """
        if not all(name in there and self._is_same(name) for name in files):
            raise self._taken(strange, "it is there, and not in the old directory")

    def require_ours(self) -> None:
        """Refuse a new place where another has made a file below ``last``."""
        for path in _files(self._storage, f"{self._new}/{self._last}"):
            name = f"{self._last}/{path}"
            if _is_temporary(name):
                continue
            if not self._storage.exists(f"{self._old}/{name}") or not self._is_same(name):
                raise self._taken(name, "another has made it there")

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

    def undo(self) -> None:
        """Remove what this try has made, what makes a table of it first."""
        for path in reversed(self._made):
            try:
                self._storage.delete(path)
            except LakeError as error:
                _log.warning("%s stays behind: %s", self._storage.uri(path), error)

    def _copy(self, name: str) -> None:
        try:
            self._write(name)
        except AlreadyExistsError:
            if self._is_same(name):
                return
            # Torn by a crash, or older than the source. Another's, if a table is there by now.
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
            raise self._taken(name, "another has made it meanwhile")

    def _require_unchanged(self, files: Mapping[str, FileInfo]) -> None:
        if _content(self._storage, self._old) != files:
            raise CommitConflictError(
                f"Cannot move {self._storage.uri(self._old)}: somebody writes there meanwhile."
                " Nothing was moved: stop its writers, then repeat."
            )

    def _is_same(self, name: str) -> bool:
        source, target = (f"{directory}/{name}" for directory in (self._old, self._new))
        return _size(self._storage, source) == _size(self._storage, target) and content_digest(
            self._storage, source
        ) == content_digest(self._storage, target)

    def _taken(self, name: str, why: str) -> AlreadyExistsError:
        storage = self._storage
        return AlreadyExistsError(
            f"Cannot move {storage.uri(self._old)} to {storage.uri(self._new)}:"
            f" {storage.uri(f'{self._new}/{name}')} is no copy, {why}. The old directory is as it"
            " was. Choose another name; or, if an earlier try of this move left it behind, remove"
            " the new directory and repeat."
        )


def _content(storage: Storage, directory: str) -> dict[str, FileInfo]:
    files = _files(storage, directory)
    files.pop(MOVE_MARK, None)
    return files


def _files(storage: Storage, directory: str) -> dict[str, FileInfo]:
    """Every file below a directory, by its path in there."""
    found: dict[str, FileInfo] = {}
    for info in storage.list(directory):
        if info.is_directory:
            below = _files(storage, info.path)
            found.update({f"{info.name}/{name}": file for name, file in below.items()})
        else:
            found[info.name] = info
    return found


def _is_temporary(name: str) -> bool:
    """Whether a crash may have left the file behind; see ``temporary_sibling``."""
    return any(part.startswith(".") and part.endswith(".tmp") for part in name.split("/"))


def _size(storage: Storage, path: str) -> int:
    with storage.open_input(path) as stream:
        return stream.seek(0, 2)
