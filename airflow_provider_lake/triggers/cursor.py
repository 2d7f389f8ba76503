"""How far the watcher of a table has come, and what has happened since: pure but for one read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.assets.change import counts, describe_change

if TYPE_CHECKING:
    from lakeformat import Snapshot, Table

__all__ = ["Cursor", "Wanted", "advance"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last snapshot that was looked at; 0 is before the first."""

    snapshot_id: int
    identity: str | None = None
    """Tells it from another snapshot of its number, as a rollback makes."""

    def to_json(self) -> dict[str, Any]:
        """What is kept between two lives of a triggerer."""
        return {"snapshot_id": self.snapshot_id, "identity": self.identity}

    @classmethod
    def before_all(cls, cursor: Cursor | None) -> Cursor:
        """Where a watcher stands at a table without a snapshot; one that had some is not forgotten.

        Whatever comes to a table that was there before is another history, and said to be.
        """
        return cls(0) if cursor is None or cursor.identity is None else cursor

    @classmethod
    def from_json(cls, kept: Any) -> Cursor | None:
        """What was kept; None for anything else."""
        if not isinstance(kept, dict) or not isinstance(kept.get("snapshot_id"), int):
            return None
        return cls(kept["snapshot_id"], kept.get("identity"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a watcher waits for."""

    name: str
    kinds: Collection[str]
    changelog: bool


def advance(
    table: Table, head: Snapshot | None, cursor: Cursor | None, wanted: Wanted
) -> tuple[dict[str, Any] | None, Cursor]:
    """The event to send, or None, and where the watcher is then.

    Without a cursor it begins at the head and tells of nothing that was there already.
    """
    if head is None:
        return None, Cursor.before_all(cursor)
    here = Cursor(head.id, head.identity)
    if cursor is None or cursor == here:
        return None, here
    found = table.snapshots(after=max(cursor.snapshot_id - 1, 0))
    if _is_rewound(found, head, cursor):
        event = describe_change(wanted.name, [head], previous=None, rewound=True)
        return event, here
    newer = [snapshot for snapshot in found if snapshot.id > cursor.snapshot_id]
    if not newer:
        return None, here
    here = Cursor(newer[-1].id, newer[-1].identity)
    told = [each for each in newer if counts(each, wanted.kinds, changelog=wanted.changelog)]
    if not told:
        return None, here
    missed = newer[0].id > cursor.snapshot_id + 1
    return describe_change(wanted.name, told, previous=cursor.snapshot_id, missed=missed), here


def _is_rewound(found: list[Snapshot], head: Snapshot, cursor: Cursor) -> bool:
    """Whether what the cursor stands on is not among the table's history any more."""
    if head.id < cursor.snapshot_id:
        return True
    same = [snapshot for snapshot in found if snapshot.id == cursor.snapshot_id]
    return any(cursor.identity not in (None, snapshot.identity) for snapshot in same)
