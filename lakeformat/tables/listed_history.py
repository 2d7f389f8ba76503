# SPDX-License-Identifier: Apache-2.0
"""The snapshots of a table whose metadata lists them all, in one file or in a few."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.since import Since
from lakeformat.tables.table import Table
from lakeformat.tables.table_snapshot import TableSnapshot

__all__ = ["History", "ListedHistory"]

S = TypeVar("S", bound=TableSnapshot)


class History(Protocol[S]):
    """The snapshots that have not expired, oldest first."""

    @property
    def snapshots(self) -> Sequence[S]:
        """All snapshots that have not expired."""

    @property
    def beginning(self) -> Position:
        """The position before the first commit."""

    @property
    def oldest(self) -> Position:
        """The position before the first of ``snapshots``."""

    @property
    def head(self) -> Position:
        """The newest position; the beginning if there are no snapshots."""

    def between(self, after: AnyPosition, upto: AnyPosition | None) -> list[S]:
        """Return the snapshots after ``after``, up to and including ``upto``; ``upto=None`` means
        the newest.
        """

    def since(self, after: AnyPosition, upto: AnyPosition | None) -> Since[S]:
        """Return the snapshots as ``between`` does, and two flags.

        ``missed`` is True if snapshots after ``after`` have expired. ``rewound`` is True if a
        rollback removed the snapshot of ``after``.
        """


class ListedHistory(Table, Generic[S]):
    """A table whose methods return snapshots from the newest metadata."""

    def snapshots(self, *, after: AnyPosition | None = None) -> list[S]:
        """Return the snapshots that have not expired, oldest first.

        With ``after``, only the snapshots after that position are returned.
        """
        history = self._history()
        return [*history.snapshots] if after is None else history.between(after, None)

    def latest_snapshot(self, known: S | None = None) -> S | None:
        """Return the newest snapshot; None before the first commit.

        If ``known`` is still the newest, ``known`` is returned. Metadata is read again only if it
        has changed.
        """
        found = self.snapshots()
        newest = found[-1] if found else None
        return known if newest == known else newest

    def advance(self, after: AnyPosition, limit: int | None = None) -> Position:
        """Return the position ``limit`` snapshots after ``after``, or the newest if fewer follow.

        ``limit=None`` returns the newest. If the table was rolled back, the newest position may be
        before ``after``.
        """
        history = self._history()
        if limit is None:
            return history.head
        newer = history.between(after, None)[:limit]
        return newer[-1].position if newer else min(history.head, self.position(after))

    def since(self, after: AnyPosition, upto: AnyPosition | None = None) -> Since[S]:
        """Return the snapshots after ``after``, oldest first, up to ``upto`` or to the newest.

        The flag ``missed`` of the result is True if snapshots after ``after`` have expired. The
        flag ``rewound`` is True if a rollback removed the snapshot of ``after``.
        """
        return self._history().since(after, upto)

    @abstractmethod
    def _history(self) -> History[S]: ...
