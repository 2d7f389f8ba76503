# SPDX-License-Identifier: Apache-2.0
"""The history of a branch: its snapshots and their positions."""

from __future__ import annotations

from typing import Any

from lakeformat.iceberg.branch_history import BranchHistory, BranchSnapshot, history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.since import Since
from lakeformat.tables.table import Table

__all__ = ["TableHistory"]


class TableHistory(Table):
    """The part of a table that names snapshots and positions of its branch."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    @property
    def location(self) -> str:
        """The URI of the table."""
        return self._handle.uri

    def snapshots(self, *, after: AnyPosition | None = None) -> list[BranchSnapshot]:
        """Return the kept snapshots of the branch, oldest first, or those after a position."""
        history = self._history()
        return [*history.snapshots] if after is None else history.between(after, None)

    def latest_snapshot(self, known: BranchSnapshot | None = None) -> BranchSnapshot | None:
        """Return the newest snapshot of the branch; None before the first commit.

        If ``known`` is still the newest, it is returned. Metadata that is known is not read again.
        """
        found = self.snapshots()
        newest = found[-1] if found else None
        return known if newest == known else newest

    def position(self, named: Any = None) -> Position:
        """Return the newest position of the branch, or convert a stored position.

        An int is the id of a snapshot of the branch, or else a sequence number.
        """
        history = self._history()
        if named is None:
            return history.head
        given = Position.parse(named)
        if isinstance(named, int):
            for each in history.snapshots:
                if each.snapshot_id == named:
                    return each.position
        return Position(
            (history.number(given),), self._handle.branch, given.identity, self.location
        )

    def snapshot_id_at(self, position: Position) -> int:
        """Return the id of the snapshot at a position of the branch; 0 at the beginning.

        A position without a snapshot of its own is that of the newest snapshot before it.
        """
        if position.identity is not None:
            return int(position.identity)
        upto = self._history().numbered(position)
        return upto[-1].snapshot_id if upto else 0

    def positions(
        self, *, after: AnyPosition | None = None, upto: AnyPosition | None = None, limit: int
    ) -> list[Position]:
        """Return the newest positions after one and up to another, oldest first."""
        history = self._history()
        found = history.numbered(upto) if after is None else history.between(after, upto)
        return [each.position for each in found[-limit:]] if limit > 0 else []

    def advance(self, after: AnyPosition, limit: int | None = None) -> Position:
        """Return the newest position, at most ``limit`` snapshots after another."""
        history = self._history()
        if limit is None:
            return history.head
        newer = history.between(after, None)[:limit]
        return newer[-1].position if newer else min(history.head, self.position(after))

    def since(self, after: AnyPosition, upto: AnyPosition | None = None) -> Since[BranchSnapshot]:
        """Return the snapshots after a position, oldest first, up to another or to the newest.

        The result shows if some have expired unseen, and if a rollback removed the history of
        ``after``.
        """
        return self._history().since(after, upto)

    def _loaded(self) -> LoadedMetadata:
        return self._handle.load()

    def _history(self) -> BranchHistory:
        return history_of(self._loaded().metadata, self._handle.branch, self.location)
