# SPDX-License-Identifier: Apache-2.0
"""The report of discarding a staged result."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.tables.report import Report

__all__ = ["DiscardReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardReport(Report):
    """The report of discarding one staged result, or of its dry run."""

    staged: str
    """The address of the staged result."""
    outcome: str
    """``discarded``, ``published`` or ``claimed``.

    If the result was published before, only its record was deleted. A claimed result was kept,
    because a publication had begun.
    """
    dry_run: bool
    created_millis: int
    files: int
    """The number of files of the result. The changelog and index files of a Paimon table are
    deleted, too, but not counted.
    """
    bytes: int
    """The total size of the counted files in bytes."""
    left: tuple[str, ...] = ()
    """The addresses of files that could not be deleted; ``remove_orphans`` deletes them."""
    reason: str
