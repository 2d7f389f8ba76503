# SPDX-License-Identifier: Apache-2.0
"""The report of discarding a staged result that will not be published."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["DiscardReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardReport(Report):
    """The result of discarding one staged result, or of a dry run."""

    staged: str
    """The address of the staged result."""
    outcome: str
    """``discarded``, ``published`` (only its note was deleted) or ``claimed`` (it is kept)."""
    dry_run: bool
    created_millis: int
    files: int
    bytes: int
    left: tuple[str, ...] = ()
    """Files that could not be deleted; remove_orphans deletes them."""
    reason: str
