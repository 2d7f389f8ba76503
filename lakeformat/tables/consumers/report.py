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
    """A consumer and its progress."""

    id: str
    next_snapshot: int
    modified_millis: int
    """The time when the progress of the consumer was last stored, in epoch milliseconds."""
    behind: int
    """The number of snapshots that the consumer has not read yet."""
    is_stale: bool
    """True if the snapshot that the consumer reads next has expired.

    No snapshots are kept for a stale consumer.
    """
    position: Position
    """The position up to which the consumer has read the history."""

    def to_dict(self) -> dict[str, Any]:
        """Return the state without ``position`` as a dict, ready for JSON.

        The first two keys are the columns of the system table ``$consumers``.
        """
        return {
            "consumer_id": self.id,
            "next_snapshot_id": self.next_snapshot,
            "progress_time": iso_text(self.modified_millis),
            "behind": self.behind,
            "is_stale": self.is_stale,
        }


@dataclass(frozen=True, slots=True)
class ConsumerReport(Report):
    """The result of deleting consumers, or of its dry run."""

    table: str
    dry_run: bool
    removed: tuple[str, ...]
    kept: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
        return {**asdict(self), "removed": [*self.removed], "kept": [*self.kept]}
