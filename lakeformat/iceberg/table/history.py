# SPDX-License-Identifier: Apache-2.0
"""The methods of a table for the snapshots and positions of its branch."""

from __future__ import annotations

from typing import Any

from lakeformat.iceberg.branch_history import BranchHistory, BranchSnapshot, history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.tables.listed_history import ListedHistory
from lakeformat.tables.position import AnyPosition, Position

__all__ = ["TableHistory"]


class TableHistory(ListedHistory[BranchSnapshot]):
    """The methods of a table for the snapshots and positions of its branch."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    @property
    def location(self) -> str:
        """The URI of the table."""
        return self._handle.uri

    @property
    def branch(self) -> str:
        """The name of the branch that is read and written."""
        return self._handle.branch

    @property
    def identity(self) -> str:
        """The UUID of the table; "" if the table has none, as is possible in version 1.

        If the table is dropped and created again under the same name, it has a new UUID.
        """
        return self._handle.load().metadata.table_uuid or ""

    def position(self, named: Any = None) -> Position:
        """Return the newest position of the branch; with ``named``, convert a stored position.

        An int is read as the id of a snapshot of the branch or, if no snapshot of the branch has
        this id, as a sequence number. Raise ``InvalidRequestError`` for a value that is not a
        position of this branch, and ``UnsupportedError`` in version 1.
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
        """Return the id of the newest snapshot of the branch up to a position; 0 if there is none.

        If the position contains the id of a snapshot, return that id.
        """
        if position.identity is not None:
            return int(position.identity)
        upto = self._history().numbered(position)
        return upto[-1].snapshot_id if upto else 0

    def positions(
        self, *, after: AnyPosition | None = None, upto: AnyPosition | None = None, limit: int
    ) -> list[Position]:
        """Return the newest positions after ``after`` and up to ``upto``, at most ``limit``, oldest
        first.

        Snapshots from before the upgrade to version 2 have no position and are left out. In version
        1 raise ``UnsupportedError``.
        """
        history = self._history()
        _ = history.head  # raises if the newest snapshot has no position, in version 1
        found = history.numbered(upto) if after is None else history.between(after, upto)
        return [each.position for each in found[-limit:]] if limit > 0 else []

    def _loaded(self) -> LoadedMetadata:
        return self._handle.load()

    def _history(self) -> BranchHistory:
        return history_of(self._loaded().metadata, self._handle.branch, self.location)
