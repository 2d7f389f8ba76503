# SPDX-License-Identifier: Apache-2.0
"""Numbered files with hints: ``snapshot-<n>`` or ``changelog-<n>``, with LATEST and EARLIEST.

A hint is a file with a number: the newest or the oldest that the writer of the hint knew. A right
hint saves a listing; a wrong hint is ignored, and no result depends on it. EARLIEST is written for
other engines; readers here do not use it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lakeformat.errors import NotFoundError
from lakeformat.paimon.layout import TableLayout, numbered
from lakeformat.storage import Storage
from lakeformat.storage.base import TooLargeError

__all__ = ["NumberedFiles", "numbered_changelogs", "numbered_snapshots"]

FIRST_ID = 1
_STEPS = 32
"""The distance from the hint at which the search stops, and the directory is listed instead."""
_FOR_READ = (
    "Restore lost files from a backup before the next commit: a commit takes the number %d again, "
    "so afterwards the lost files must not be restored. If none was lost, `lake repair-hints "
    "TABLE` corrects the hint"
)
_FOR_COMMIT = (
    "This commit takes the number %d. If it succeeds, do not restore lost files, but write their "
    "changes again. If it fails, restore lost files from a backup before the next commit"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NumberedFiles:
    """The files ``<directory>/<prefix><n>``."""

    storage: Storage
    directory: str
    prefix: str

    def ids(self) -> list[int]:
        """Return the numbers of the existing files, ascending."""
        names = (info.name for info in self.storage.list(self.directory))
        return sorted(n for n in (numbered(name, self.prefix) for name in names) if n is not None)

    def latest_id(self, *, for_commit: bool = False) -> int | None:
        """Return the highest ``<n>`` of the existing files; None if there is no file.

        If the hint LATEST is above this number, log a warning with advice. With ``for_commit``, the
        advice is about the commit that takes the next number.
        """
        hint = self._read_latest_hint()
        if hint is not None:
            # Numbers have no gaps: files newer than the hint are found by trying the next
            # numbers, at a cost that does not grow with the number of files.
            after = next((n for n in range(hint + 1, hint + _STEPS) if not self._exists(n)), None)
            if after is not None and self._exists(after - 1):
                return after - 1
        newest = max(self.ids(), default=None)
        if hint is not None and hint > (newest or 0) and newest is not None:
            # The format allows a hint that is too high; a lost file also leaves such a hint.
            advice = _FOR_COMMIT if for_commit else _FOR_READ
            _log.warning(f"%s. {advice}", self._hint_above(hint, newest), newest + 1)
        return newest

    def lost(self, known: int) -> str | None:
        """Return a report if the hint LATEST is above the highest number of the existing files.

        The report is the beginning of a message, which the caller completes. Return None in all
        other cases, also if there is no hint or no numbered file. ``known`` is the number of an
        existing file, or 0. If the hint is not above ``known``, the directory is not listed.
        """
        hint = self._read_latest_hint()
        if hint is None or hint <= known:
            return None
        newest = max(self.ids(), default=None)
        if newest is None or hint <= newest:
            return None
        return self._hint_above(hint, newest)

    def _hint_above(self, hint: int, newest: int) -> str:
        return (
            f"the hint {self.storage.uri(f'{self.directory}/LATEST')} has {hint}, but the newest "
            f"file is {self.prefix}{newest}: the hint is wrong, or newer files up to "
            f"{self.prefix}{hint} were lost, with their changes"
        )

    def write_latest_hint(self, number: int) -> None:
        """Replace the content of LATEST by ``number``."""
        self.storage.overwrite(f"{self.directory}/LATEST", str(number).encode())

    def write_earliest_hint(self, number: int) -> None:
        """Replace the content of EARLIEST by ``number``."""
        self.storage.overwrite(f"{self.directory}/EARLIEST", str(number).encode())

    def _exists(self, number: int) -> bool:
        return self.storage.exists(f"{self.directory}/{self.prefix}{number}")

    def _read_latest_hint(self) -> int | None:
        try:
            content = self.storage.read(f"{self.directory}/LATEST")
        except (NotFoundError, TooLargeError):
            return None
        text = content.decode("ascii", errors="replace").strip()
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(1 << 63))
        return int(text) if is_number and int(text) >= FIRST_ID else None


def numbered_snapshots(storage: Storage, layout: TableLayout) -> NumberedFiles:
    """Return the files ``snapshot-<n>`` of the table or branch of ``layout``, with their hints."""
    return NumberedFiles(storage, layout.snapshot_directory, "snapshot-")


def numbered_changelogs(storage: Storage, layout: TableLayout) -> NumberedFiles:
    """Return the files ``changelog-<n>`` of the table or branch of ``layout``, with their hints."""
    return NumberedFiles(storage, layout.changelog_directory, "changelog-")
