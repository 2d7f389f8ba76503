"""Which event a watcher sends next, and where it stands then: pure but for one read.

The cursor of a watcher is the position it has looked up to.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.assets.change import counts, describe_change

if TYPE_CHECKING:
    from lakeformat import Snapshot, Table
    from lakeformat.tables.position import Position

__all__ = ["Wanted", "advance", "at_no_snapshot", "read_cursor"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a watcher waits for."""

    name: str
    kinds: Collection[str]
    changelog: bool


def read_cursor(kept: Any) -> Position | None:
    """Return the position that was kept, also by an earlier version; None if there is none."""
    from lakeformat import InvalidRequestError
    from lakeformat.tables.position import Position

    try:
        return Position.parse(kept)
    except InvalidRequestError:
        return None


def at_no_snapshot(cursor: Position | None) -> Position:
    """Return where a watcher stands at a table without a snapshot.

    A cursor that stood on a snapshot is kept: whatever comes to that table is another history.
    """
    from lakeformat.tables.position import Position

    return Position((0,)) if cursor is None or cursor.identity is None else cursor


def advance(
    table: Table, head: Snapshot | None, cursor: Position | None, wanted: Wanted
) -> tuple[dict[str, Any] | None, Position]:
    """Return the event to send, or None, and where the watcher is then.

    Without a cursor it begins at the head and tells of nothing that was there already.
    """
    if head is None:
        return None, at_no_snapshot(cursor)
    here = head.position
    if cursor is None or cursor.is_exactly(here):
        return None, here
    since = table.since(cursor)
    if since.rewound or here < cursor:
        event = describe_change(wanted.name, [head], previous=None, rewound=True)
        return event, here
    if not since.snapshots:
        return None, here
    here = since.snapshots[-1].position
    told = [x for x in since.snapshots if counts(x, wanted.kinds, changelog=wanted.changelog)]
    if not told:
        return None, here
    return describe_change(wanted.name, told, previous=cursor, missed=since.missed), here
