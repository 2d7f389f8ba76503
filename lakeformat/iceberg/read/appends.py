# SPDX-License-Identifier: Apache-2.0
"""Reads the rows that appends between two snapshots added."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from lakeformat.errors import NotFoundError
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.read.plan import FilePlan, TableState, plan_added_files
from lakeformat.iceberg.read.scan import Scan
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.tables.moment import moment_text

__all__ = [
    "APPEND",
    "REPLACE",
    "AppendedRows",
    "require_beginning",
    "snapshots_between",
]

APPEND, REPLACE = "append", "replace"


class AppendedRows(Scan):
    """The rows that the snapshots in ``snapshots`` appended, read with the schema of ``state``."""

    def __init__(
        self,
        state: TableState,
        snapshots: Sequence[Snapshot],
        columns: Sequence[str] | None = None,
        where: PredicateFilter | None = None,
    ) -> None:
        super().__init__(state, columns, where)
        self._snapshots = tuple(snapshots)

    @cached_property
    def _plan(self) -> FilePlan:
        return plan_added_files(self._state, self._snapshots, self._conditions)


def snapshots_between(metadata: TableMetadata, after: int | None, upto: int) -> list[Snapshot]:
    """Return the snapshots after ``after``, up to and including ``upto``, oldest first.

    ``after=None`` means from the first snapshot on. The snapshot ``after`` may have expired. Raise
    ``NotFoundError`` if ``upto`` or snapshots after ``after`` have expired, or if ``after`` is not
    an ancestor of ``upto``.
    """
    window: list[Snapshot] = []
    for snapshot in metadata.ancestry(upto):
        if snapshot.snapshot_id == after:
            break
        window.append(snapshot)
        if snapshot.parent_id == after is not None:
            break
    else:
        _require_start(metadata, window, after, upto)
    return window[::-1]


def require_beginning(metadata: TableMetadata, first: int, millis: int) -> None:
    """Raise ``NotFoundError`` if a branch may have had a snapshot at a time, but none is known.

    ``millis`` is the time, and ``first`` is the oldest known head of the branch, which is newer.
    The branch had no snapshot at that time if ``first`` and all its ancestors still exist and were
    made later. Otherwise, it may have had one.
    """
    *_, oldest = metadata.ancestry(first)
    if oldest.parent_id is not None or oldest.timestamp_ms <= millis:
        raise NotFoundError(
            f"snapshots of {metadata.location} have expired, so it is not known which snapshot was "
            f"the newest at {moment_text(millis)}: choose a later time, or read all rows with "
            "scan(), and then the changes after the snapshot of that scan"
        )


def _require_start(
    metadata: TableMetadata, window: Sequence[Snapshot], after: int | None, upto: int
) -> None:
    """Raise ``NotFoundError`` if ``window`` is not complete.

    ``window`` has ``upto`` and all its ancestors that still exist, newest first. The snapshot
    ``after`` was not found among them. So ``window`` is complete only if ``after`` is None and
    ``window`` reaches back to the first snapshot of the table.
    """
    if not window:
        raise NotFoundError(
            f"{metadata.location} has no snapshot {upto}: it may have expired; "
            "snapshots() lists those that are left"
        )
    if after is not None:
        raise NotFoundError(
            f"snapshot {after} of {metadata.location} is not among the ancestors of {upto}: it is "
            f"newer than {upto}, it belongs to another branch, or snapshots between the two have "
            "expired. Read all rows with scan(), and then the changes after the snapshot of that "
            "scan. If both snapshots still exist, mode='diff' compares their rows"
        )
    if window[-1].parent_id is not None:
        raise _expired(metadata)


def _expired(metadata: TableMetadata) -> NotFoundError:
    return NotFoundError(
        f"the first snapshots of {metadata.location} have expired, so their appends are not "
        "known: read all rows with scan(), and then the changes after the snapshot of that scan"
    )
