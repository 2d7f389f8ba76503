"""What became of branches, for people and programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lakeformat.paimon.read.time_travel import iso_text

__all__ = ["BranchInfo", "BranchReport", "FastForwardReport"]


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """One branch as it is listed."""

    name: str
    create_millis: int
    snapshots: int
    """How many it has, those included that it shares with main."""
    first_snapshot: int | None
    last_snapshot: int | None
    tags: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, under the names that ``$branches`` has for them."""
        return {
            "branch_name": self.name,
            "create_time": iso_text(self.create_millis),
            "snapshot_count": self.snapshots,
            "first_snapshot_id": self.first_snapshot,
            "last_snapshot_id": self.last_snapshot,
            "tag_count": self.tags,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReport:
    """The outcome for one branch."""

    table: str
    branch: str
    action: str
    """``created``, ``kept`` or ``renamed``; in a dry run what it would be."""
    snapshot_id: int | None
    """Where it begins; None for one without snapshots."""
    reason: str
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForwardReport:
    """What main took over from a branch."""

    table: str
    branch: str
    snapshots: tuple[int, ...]
    """The snapshots main has got."""
    schemas: tuple[int, ...]
    tags: tuple[str, ...]
    dry_run: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)
