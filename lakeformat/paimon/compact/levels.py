# SPDX-License-Identifier: Apache-2.0
"""The files of a bucket of a primary-key table as sorted runs, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lakeformat.paimon.metadata.data_file_meta import DataFileMeta

__all__ = ["Levels", "SortedRun"]

_UNKNOWN = datetime(1, 1, 1)  # noqa: DTZ001 - files record local time without a zone


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files whose keys do not overlap: one file of level 0, or all files of a higher level."""

    level: int
    files: tuple[DataFileMeta, ...]

    @property
    def size(self) -> int:
        return sum(file.file_size for file in self.files)


@dataclass(frozen=True, slots=True)
class Levels:
    """The sorted runs of a bucket: each file of level 0, newest first, then one run per higher
    level.
    """

    runs: tuple[SortedRun, ...]
    max_level: int

    @classmethod
    def of_files(cls, files: Iterable[DataFileMeta], level_count: int) -> Levels:
        """Return the sorted runs of a bucket's files.

        A level that has files is included, even if ``level_count`` is lower.
        """
        by_level: dict[int, list[DataFileMeta]] = {}
        for file in files:
            by_level.setdefault(file.level, []).append(file)
        newest = sorted(by_level.pop(0, []), key=_newest_first)
        runs = [SortedRun(0, (file,)) for file in newest]
        runs += [SortedRun(level, tuple(by_level[level])) for level in sorted(by_level)]
        return cls(tuple(runs), max(level_count - 1, 1, *by_level))

    @property
    def level_0(self) -> tuple[SortedRun, ...]:
        """The runs of level 0, newest first; each is a single file."""
        return tuple(run for run in self.runs if run.level == 0)

    @property
    def highest(self) -> int:
        """The highest level that has files; 0 without files."""
        return max((run.level for run in self.runs), default=0)

    @property
    def size(self) -> int:
        return sum(run.size for run in self.runs)


def _newest_first(file: DataFileMeta) -> tuple[int, int, datetime, str]:
    """Return the sort key that puts files of level 0 in order, newest first.

    The file with the larger last sequence number is newer. Files with equal last numbers are in
    ascending order of their first sequence number, then of their creation time.
    """
    created = file.creation_time or _UNKNOWN
    return (-file.max_sequence_number, file.min_sequence_number, created, file.file_name)
