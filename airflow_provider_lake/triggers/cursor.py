# SPDX-License-Identifier: Apache-2.0
"""The position of a table's watcher, and the event for the commits after it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.assets.change import counts, describe_change, position_of

if TYPE_CHECKING:
    from lakeformat import Position
    from lakeformat.tables.table import Table
    from lakeformat.tables.table_snapshot import TableSnapshot

__all__ = ["WatchedCommits", "advance", "at_no_snapshot", "read_cursor"]


@dataclass(frozen=True, slots=True)
class WatchedCommits:
    """The commits for which a watcher sends events: those of a kind in ``kinds``. With
    ``changelog``, those of any kind that have changelog rows.
    """

    name: str
    kinds: Collection[str]
    changelog: bool


def read_cursor(kept: Any) -> Position | None:
    """Return the position that is stored in ``kept``; None if ``kept`` is None or damaged. An
    earlier release may have stored the position in another form, which is read, too.
    """
    from lakeformat import InvalidRequestError, Position

    try:
        return Position.parse(kept)
    except InvalidRequestError:
        return None


def at_no_snapshot(cursor: Position | None) -> Position:
    """Return the position of a watcher while its table has no snapshot.

    If the stored position ``cursor`` has the identity of a snapshot, the table was dropped or
    recreated after that snapshot. Then return ``cursor`` unchanged, because it shows that the next
    snapshots belong to another history. Else return the position before the first snapshot.
    """
    from lakeformat import Position

    return Position((0,)) if cursor is None or cursor.identity is None else cursor


def advance(
    table: Table, head: TableSnapshot | None, cursor: Position | None, wanted: WatchedCommits
) -> tuple[dict[str, Any] | None, Position]:
    """Return the event to send and the new position of the watcher. The event is None if no watched
    commit is new. If commits expired before the watcher saw them, an event is sent, because some
    of them may have been of a watched kind.

    If the position ``cursor`` is None, the watcher starts at the newest snapshot, ``head``, and
    reports no older snapshot. After a rollback, the event is about all rows. If
    ``wanted.changelog`` is set, raise ``UnsupportedError`` for a table without changelogs.
    """
    if wanted.changelog:
        table.require("changelog")
    if head is None:
        return None, at_no_snapshot(cursor)
    here = head.position
    if cursor is None or cursor.is_exactly(here):
        return None, here
    if cursor.branch is None and cursor.identity is None:
        cursor = position_of(table, cursor.number)  # a snapshot that the DAG names
        if cursor is None:
            return _about_all_rows(table, head, wanted), here
    since = table.since(cursor)
    if not since.rewound and here < cursor:
        return None, cursor  # an earlier check, handled late: the cursor is already beyond it
    if since.rewound:
        return _about_all_rows(table, head, wanted), here
    if not since.snapshots:
        return None, here
    here = since.snapshots[-1].position
    counted = [x for x in since.snapshots if counts(x, wanted.kinds, changelog=wanted.changelog)]
    if not counted and not since.missed:
        return None, here
    counted = counted or [since.snapshots[-1]]  # those that expired may have counted
    return describe_change(wanted.name, table, counted, previous=cursor, missed=since.missed), here


def _about_all_rows(table: Table, head: TableSnapshot, wanted: WatchedCommits) -> dict[str, Any]:
    return describe_change(wanted.name, table, [head], previous=None, rewound=True)
