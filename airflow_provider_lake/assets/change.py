# SPDX-License-Identifier: Apache-2.0
"""The payload of asset events of a table, the same from tasks and from watchers.

========================  ==========================================================
``table``                 ``database.table``
``snapshot_id``           the newest snapshot of the event
``previous_snapshot_id``  the snapshot after which the event begins; 0: there is none;
                          None: the event is about all rows
``position``              ``snapshot_id`` as the text of a position, for any table format
``previous_position``     ``previous_snapshot_id`` as the text of a position; None: the
                          event is about all rows
``commit_kind``           the kind of the newest commit, such as ``APPEND``
``commits``               the number of commits
``rows``                  rows added less rows deleted, as the commits counted them
``changelog_rows``        rows in the changelogs of the commits
``schema_id``             the schema of the newest snapshot
``watermark``             the event time up to which the table is complete, in
                          epoch milliseconds; None if unknown
``time_millis``           the time of the newest commit, in epoch milliseconds
``missed``                True if some snapshots after ``previous_snapshot_id`` had
                          expired unread
``rewound``               True if the table was rolled back or recreated
========================  ==========================================================

If all snapshots of a task's event have expired already, the payload for a Paimon table has only
``table``, the two ids, the two positions and ``missed``. For an Iceberg or Mixed table the event
then has no payload.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakeformat import Position
    from lakeformat.tables.table import Table
    from lakeformat.tables.table_snapshot import TableSnapshot

__all__ = ["ALL_KINDS", "ROW_KINDS", "check_kinds", "counts", "describe_change", "position_of"]

ALL_KINDS = ("APPEND", "COMPACT", "OVERWRITE", "ANALYZE")
ROW_KINDS = ("APPEND", "OVERWRITE")
"""The kinds of commits that change rows; ``COMPACT`` and ``ANALYZE`` do not."""


def check_kinds(kinds: Collection[str]) -> tuple[str, ...]:
    """Return kinds of commits in the order of ``ALL_KINDS``. Raise ``ValueError`` for an unknown
    kind, for an empty collection, and for a str in place of a collection.
    """
    if isinstance(kinds, str) or not kinds or (unknown := {*kinds} - {*ALL_KINDS}):
        from lakeformat.types.closest import closest  # only for a message

        near = closest(min(unknown), ALL_KINDS) if kinds and not isinstance(kinds, str) else ""
        raise ValueError(
            f"kinds must be a list of one or more of {', '.join(ALL_KINDS)}, got {kinds!r}{near}"
        )
    return tuple(kind for kind in ALL_KINDS if kind in kinds)


def counts(snapshot: TableSnapshot, kinds: Collection[str], *, changelog: bool) -> bool:
    """Return True if the kind of the snapshot is in ``kinds``.

    With ``changelog``, ignore ``kinds`` and return True if the snapshot has changelog rows. It may
    be the snapshot of a compaction that publishes the changelog of earlier commits.
    """
    if changelog:
        return bool(snapshot.changelog_record_count)
    return snapshot.commit_kind in kinds


def position_of(table: Table, given: int | str) -> Position | None:
    """Return the position that ``given`` means in ``table``.

    Return None for the id of a snapshot that a Mixed table does not have, because the snapshot has
    expired or the table was recreated.
    """
    from lakeformat import NotFoundError

    try:
        return table.position(given)
    except NotFoundError:
        table.position()  # raises NotFoundError if the table itself does not exist
        return None


def describe_change(
    name: str,
    table: Table,
    snapshots: Sequence[TableSnapshot],
    *,
    previous: Position | None,
    missed: bool = False,
    rewound: bool = False,
) -> dict[str, Any]:
    """Return the payload of an event about ``snapshots``, one or more, oldest first.

    ``previous`` is the position before the first of these snapshots; None for an event about all
    rows of the table, as after a rollback. ``missed`` is True if earlier snapshots have expired
    unread. ``rewound`` is True if the table was rolled back or recreated.
    """
    newest = snapshots[-1]
    return {
        "table": name,
        "snapshot_id": newest.id,
        "previous_snapshot_id": None if previous is None else table.snapshot_id_at(previous),
        "position": str(newest.position),
        "previous_position": None if previous is None else str(previous),
        "commit_kind": str(newest.commit_kind),
        "commits": len(snapshots),
        "rows": sum(snapshot.delta_record_count for snapshot in snapshots),
        "changelog_rows": sum(snapshot.changelog_record_count or 0 for snapshot in snapshots),
        "schema_id": newest.schema_id,
        "watermark": newest.watermark,
        "time_millis": newest.time_millis,
        "missed": missed,
        "rewound": rewound,
    }
