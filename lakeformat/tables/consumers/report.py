# SPDX-License-Identifier: Apache-2.0
"""Reports about consumers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.tables.moment import iso_text
from lakeformat.tables.position import Position
from lakeformat.tables.report import Report

__all__ = ["ConsumerReport", "ConsumerState"]


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """A reader of changes and its progress."""

    id: str
    next_snapshot: int
    modified_millis: int
    """The time of its last progress."""
    behind: int
    """The number of snapshots that the consumer has not read yet."""
    is_stale: bool
    """True if its next snapshot has expired: it fell behind, and nothing is kept for it."""
    position: Position
    """The position up to which the consumer has read."""

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain values, with the names of ``$consumers``."""
        return {
            "consumer_id": self.id,
            "next_snapshot_id": self.next_snapshot,
            "progress_time": iso_text(self.modified_millis),
            "behind": self.behind,
            "is_stale": self.is_stale,
        }


@dataclass(frozen=True, slots=True)
class ConsumerReport(Report):
    """The consumers that were deleted, or in a dry run would be."""

    table: str
    dry_run: bool
    removed: tuple[str, ...]
    kept: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {**asdict(self), "removed": [*self.removed], "kept": [*self.kept]}
