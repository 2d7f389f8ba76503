# SPDX-License-Identifier: Apache-2.0
"""The members that the report of a compaction has for a table of any format."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["CompactSummary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSummary(Report):
    """The outcome of one compaction; the sums are over the groups of files that were compacted."""

    table: str
    strategy: str
    snapshot_ids: tuple[int, ...]
    """The snapshots that were published; empty if no action was needed."""
    earlier_snapshot_ids: tuple[int, ...] = ()
    """The snapshots of earlier tries with the same identity; the sums leave them out."""
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    files_in: int = 0
    files_out: int = 0
