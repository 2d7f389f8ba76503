# SPDX-License-Identifier: Apache-2.0
"""The report of a merge of manifests, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["CompactManifestsReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactManifestsReport(Report):
    """The outcome of merging manifests, or of its dry run."""

    table: str
    dry_run: bool
    snapshot_id: int | None
    """The published snapshot; None when nothing was merged."""
    manifests_before: int
    manifests_merged: int
    """Number of merged manifests, including those that hold the entries of deleted files."""
    manifests_after: int | None
    """None if it is only known after merging."""
    bytes_before: int
    bytes_after: int | None
    reason: str
    """The outcome in one sentence, for the log."""
