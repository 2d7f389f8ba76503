# SPDX-License-Identifier: Apache-2.0
"""A branch as ``table.branches.list()`` returns it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lakeformat.tables.moment import iso_text

__all__ = ["BranchInfo"]


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """The name, creation time, snapshots and number of tags of one branch."""

    name: str
    create_millis: int
    snapshots: int
    """Number of the snapshots in the branch, including the copy of main's snapshot that it began
    with.
    """
    first_snapshot: int | None
    last_snapshot: int | None
    tags: int

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON, with the column names of the system table ``$branches``."""
        return {
            "branch_name": self.name,
            "create_time": iso_text(self.create_millis),
            "snapshot_count": self.snapshots,
            "first_snapshot_id": self.first_snapshot,
            "last_snapshot_id": self.last_snapshot,
            "tag_count": self.tags,
        }
