# SPDX-License-Identifier: Apache-2.0
"""The members that a compaction report has for tables of every format."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["CompactSummary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSummary(Report):
    """The result of one compaction. Rows, bytes and files are totals of all its commits."""

    table: str
    strategy: str
    snapshot_ids: tuple[int, ...]
    """The ids of the snapshots that the compaction published; empty if it published none."""
    earlier_snapshot_ids: tuple[int, ...] = ()
    """The ids of snapshots that earlier attempts with the same commit identity published.

    The totals do not include the files and rows of these snapshots.
    """
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    files_in: int = 0
    files_out: int = 0
