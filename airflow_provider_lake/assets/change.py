"""What events say of a table: one small payload, whoever sends it.

========================  ==========================================================
``table``                 ``database.table``
``snapshot_id``           the newest snapshot the event tells of
``previous_snapshot_id``  the one before the first it tells of; None: all there was
``position``              ``snapshot_id`` as the text of a position, for any table format
``previous_position``     ``previous_snapshot_id`` as the text of a position
``commit_kind``           what the newest of its commits did, such as ``APPEND``
``commits``               how many commits it tells of
``rows``                  rows added less rows deleted, as the commits counted them
``changelog_rows``        rows in their changelogs
``schema_id``             the schema of the newest
``watermark``             how far in event time the table is complete; may be None
``time_millis``           when the newest was committed
``missed``                whether some of the range had expired unseen
``rewound``               whether the table was rolled back or made anew meanwhile
========================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakeformat import Snapshot
    from lakeformat.tables.position import Position

__all__ = ["ALL_KINDS", "ROW_KINDS", "check_kinds", "counts", "describe_change"]

ALL_KINDS = ("APPEND", "COMPACT", "OVERWRITE", "ANALYZE")
ROW_KINDS = ("APPEND", "OVERWRITE")
"""The commits that change rows: a compaction keeps them as they are, statistics count them."""


def check_kinds(kinds: Collection[str]) -> tuple[str, ...]:
    """Kinds of commits in a fixed order; a ``ValueError`` names what is none."""
    if isinstance(kinds, str) or not kinds or not {*kinds} <= {*ALL_KINDS}:
        raise ValueError(f"kinds are some of {', '.join(ALL_KINDS)}, got {kinds!r}")
    return tuple(kind for kind in ALL_KINDS if kind in kinds)


def counts(snapshot: Snapshot, kinds: Collection[str], *, changelog: bool) -> bool:
    """Whether somebody waits for this snapshot: for its kind, or for what its changelog holds.

    A compaction of a table with ``changelog-producer`` publishes the changelog of earlier commits.
    """
    if changelog:
        return bool(snapshot.changelog_record_count)
    return snapshot.commit_kind in kinds


def describe_change(
    table: str,
    told: Sequence[Snapshot],
    *,
    previous: Position | None,
    missed: bool = False,
    rewound: bool = False,
) -> dict[str, Any]:
    """The payload that tells of some snapshots, the oldest first; there is at least one."""
    newest = told[-1]
    marks = [snapshot.watermark for snapshot in told if snapshot.watermark is not None]
    return {
        "table": table,
        "snapshot_id": newest.id,
        "previous_snapshot_id": None if previous is None else previous.number,
        "position": str(newest.position),
        "previous_position": None if previous is None else str(previous),
        "commit_kind": str(newest.commit_kind),
        "commits": len(told),
        "rows": sum(snapshot.delta_record_count for snapshot in told),
        "changelog_rows": sum(snapshot.changelog_record_count or 0 for snapshot in told),
        "schema_id": newest.schema_id,
        "watermark": max(marks, default=None),
        "time_millis": newest.time_millis,
        "missed": missed,
        "rewound": rewound,
    }
