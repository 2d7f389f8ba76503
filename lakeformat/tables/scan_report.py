# SPDX-License-Identifier: Apache-2.0
"""Counts the files, row groups and bytes that a scan has read."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from lakeformat.tables.report import Report

__all__ = ["ScanReport"]


@dataclass(slots=True)
class ScanReport(Report):
    """The counts of one scan. Parallel reads add to the same counts."""

    files_read: int = 0
    file_bytes: int = 0
    """The total size of the opened files in bytes."""
    row_groups: int = 0
    """The number of row groups in the opened Parquet files."""
    row_groups_read: int = 0
    bytes_read: int = 0
    """The stored size in bytes of the columns that were read, in the row groups that were read."""
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[ScanReport], tuple[()]]:
        """Pickle as an empty report: a scan on another machine counts from 0."""
        return ScanReport, ()

    def opened(self, size_bytes: int) -> None:
        """Count one opened file of ``size_bytes``."""
        with self._lock:
            self.files_read += 1
            self.file_bytes += size_bytes

    def picked(self, groups: int, of: int, size_bytes: int) -> None:
        """Count one file that has ``of`` row groups, of which ``groups`` are read.

        ``size_bytes`` is the size of the read columns in the read row groups.
        """
        with self._lock:
            self.row_groups += of
            self.row_groups_read += groups
            self.bytes_read += size_bytes
