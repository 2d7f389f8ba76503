"""What a commit did, for people and programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["CommitReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport:
    """The outcome of one commit."""

    table: str
    snapshot_id: int | None
    """The snapshot that holds the rows; None when there was nothing to commit."""
    rows: int
    files: int
    bytes: int
    attempts: int
    replayed: bool
    """True when an earlier try with the same identity had published already."""
    reason: str
    """One sentence for the log: what happened, or why nothing did."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)
