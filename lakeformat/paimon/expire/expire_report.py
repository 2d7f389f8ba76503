"""What an expiry did, or would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakeformat.paimon.consumers import StalledConsumer
from lakeformat.paimon.deletion import Deleted, Removal

__all__ = ["ExpireReport"]


@dataclass(frozen=True, slots=True)
class ExpireReport:
    """What an expiry did, or in a dry run would do."""

    table: str
    dry_run: bool
    snapshots: tuple[int, ...]
    """The snapshots that expired."""
    changelogs: tuple[int, ...]
    """The changelogs that expired after their snapshots had."""
    consumers: tuple[str, ...]
    """Consumers that were forgotten, having made no progress for ``consumer.expiration-time``."""
    stale_consumers: tuple[str, ...]
    """Consumers whose next snapshot has expired already: they keep none."""
    earliest_snapshot: int | None
    """The oldest that stays."""
    reason: str
    """Why no more snapshots expired."""
    limited: bool
    """Whether more could expire but for the limit: run it again."""
    finished: int
    """How many interrupted expiries were brought to their end."""
    deleted: Deleted
    directories: int
    """How many empty directories went."""
    spared: int
    """Data files that stay because a tag, a branch or a later snapshot needs them."""
    notes: tuple[str, ...] = ()
    """What could not be read, or be done: files it leads to are left to the removal of orphans."""
    stalled_consumers: tuple[StalledConsumer, ...] = ()
    """Consumers that have not moved for long, without which more would expire."""
    removals: tuple[Removal, ...] = field(default=(), repr=False)
    """In a dry run, what would go and why, as far as ``expire_snapshots`` collects it."""

    @property
    def is_complete(self) -> bool:
        """Whether every file went that should; otherwise the next run tries again."""
        return not self.deleted.failures

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, without the single files."""
        return {
            "table": self.table,
            "dry_run": self.dry_run,
            "snapshots": [*self.snapshots],
            "changelogs": [*self.changelogs],
            "consumers": [*self.consumers],
            "stale_consumers": [*self.stale_consumers],
            "stalled_consumers": [each.to_dict() for each in self.stalled_consumers],
            "earliest_snapshot": self.earliest_snapshot,
            "reason": self.reason,
            "limited": self.limited,
            "finished": self.finished,
            **self.deleted.to_dict(),
            "directories": self.directories,
            "spared": self.spared,
            "notes": [*self.notes],
        }
