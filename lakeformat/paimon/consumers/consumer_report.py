"""What is said of consumers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.paimon.read.time_travel import iso_text
from lakeformat.tables.position import Position
from lakeformat.tables.report import Report

__all__ = ["ConsumerReport", "ConsumerState"]


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """A reader of changes, and where it stands."""

    id: str
    next_snapshot: int
    modified_millis: int
    """When it last made progress."""
    behind: int
    """How many snapshots it has not read."""
    is_stale: bool
    """Whether what it reads next has expired: it fell behind, and nothing is kept for it."""
    position: Position
    """How far it has read."""

    def to_dict(self) -> dict[str, Any]:
        """The state as plain values, under the names that ``$consumers`` has for them."""
        return {
            "consumer_id": self.id,
            "next_snapshot_id": self.next_snapshot,
            "progress_time": iso_text(self.modified_millis),
            "behind": self.behind,
            "is_stale": self.is_stale,
        }


@dataclass(frozen=True, slots=True)
class ConsumerReport(Report):
    """Which consumers were forgotten, or in a dry run would be."""

    table: str
    dry_run: bool
    removed: tuple[str, ...]
    kept: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {**asdict(self), "removed": [*self.removed], "kept": [*self.kept]}
