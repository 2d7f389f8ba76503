# SPDX-License-Identifier: Apache-2.0
"""A branch as ``table.branches.list()`` returns it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeformat.tables.moment import iso_text

__all__ = ["BranchInfo"]


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """One branch, as ``table.branches.list()`` returns it."""

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
