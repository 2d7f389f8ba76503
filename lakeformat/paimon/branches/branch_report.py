# SPDX-License-Identifier: Apache-2.0
"""Reports on branches, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeformat.tables.moment import iso_text
from lakeformat.tables.report import Report

__all__ = ["BranchInfo", "BranchReport", "FastForwardReport"]


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """One branch of a listing."""

    name: str
    create_millis: int
    snapshots: int
    """Number of its snapshots, including those shared with main."""
    first_snapshot: int | None
    last_snapshot: int | None
    tags: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, with the names of ``$branches``."""
        return {
            "branch_name": self.name,
            "create_time": iso_text(self.create_millis),
            "snapshot_count": self.snapshots,
            "first_snapshot_id": self.first_snapshot,
            "last_snapshot_id": self.last_snapshot,
            "tag_count": self.tags,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReport(Report):
    """The result for one branch."""

    table: str
    branch: str
    action: str
    """``created``, ``kept`` or ``renamed``; in a dry run the planned action."""
    snapshot_id: int | None
    """First snapshot of the branch; None for a branch without snapshots."""
    reason: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForwardReport(Report):
    """The snapshots, schemas and tags that main received from a branch."""

    table: str
    branch: str
    snapshots: tuple[int, ...]
    """Snapshots that main received."""
    schemas: tuple[int, ...]
    tags: tuple[str, ...]
    dry_run: bool
    reason: str
