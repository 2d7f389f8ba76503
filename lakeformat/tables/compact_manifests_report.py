# SPDX-License-Identifier: Apache-2.0
"""The report of a merge of manifests."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["CompactManifestsReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactManifestsReport(Report):
    """The result of a merge of manifests, or of its dry run."""

    table: str
    dry_run: bool
    snapshot_id: int | None
    """The id of the published snapshot; None if nothing was merged."""
    manifests_before: int
    manifests_merged: int
    """The number of manifests that were merged, or rewritten to drop entries of deleted files."""
    manifests_after: int | None
    """The number of manifests after the merge; None if unknown, for example in a dry run."""
    bytes_before: int
    bytes_after: int | None
    reason: str
    """The outcome in one sentence, for the log."""
