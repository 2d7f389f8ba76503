# SPDX-License-Identifier: Apache-2.0
"""The report of a rewrite of file indexes."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["FileIndexOutcome", "FileIndexReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndexOutcome:
    """One data file whose indexes changed or, in a dry run, would change, with the reason."""

    partition: str
    bucket: int
    file: str
    reason: str
    index_bytes: int = 0
    """The size of the new file index in bytes; 0 without an index, or in a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndexReport(Report):
    """The outcome of a rewrite of file indexes, or of its dry run."""

    table: str
    dry_run: bool
    wanted: tuple[str, ...]
    """The indexes that the table options request, such as ``bitmap of kind``."""
    snapshot_ids: tuple[int, ...]
    files: int
    """The number of data files in the chosen partitions, without those in ``bucket-postpone``."""
    changed: tuple[FileIndexOutcome, ...]
    index_bytes: int
    reason: str
    """One sentence for the log: the number of files with changed indexes, or why there are none."""
