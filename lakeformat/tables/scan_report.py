# SPDX-License-Identifier: Apache-2.0
"""Counts of what a scan has read so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from lakeformat.tables.report import Report

__all__ = ["ScanReport"]


@dataclass(slots=True)
class ScanReport(Report):
    """Counts of one scan; they grow while it reads, also in parallel."""

    files_read: int = 0
    file_bytes: int = 0
    """Total size of the opened files."""
    row_groups: int = 0
    """Number of row groups in the opened Parquet files."""
    row_groups_read: int = 0
    bytes_read: int = 0
    """Stored size of the columns read, in the row groups read."""
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[ScanReport], tuple[()]]:
        """Pickle as an empty report: a scan on another machine counts from zero."""
        return ScanReport, ()

    def opened(self, size_bytes: int) -> None:
        """Count one opened file."""
        with self._lock:
            self.files_read += 1
            self.file_bytes += size_bytes

    def picked(self, groups: int, of: int, size_bytes: int) -> None:
        """Count the row groups picked in one file and their size."""
        with self._lock:
            self.row_groups += of
            self.row_groups_read += groups
            self.bytes_read += size_bytes
