# SPDX-License-Identifier: Apache-2.0
"""The snapshots of a table whose metadata lists them all, in one file or in a few."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from lakeformat.tables.position import AnyPosition
from lakeformat.tables.table import Table

__all__ = ["History", "ListedHistory"]

S = TypeVar("S")


class History(Protocol[S]):
    """The snapshots that have not expired, oldest first."""

    @property
    def snapshots(self) -> Sequence[S]:
        """All of them."""

    def between(self, after: AnyPosition, upto: AnyPosition | None) -> list[S]:
        """Return the snapshots after ``after``, up to and including ``upto``; None: the newest."""


class ListedHistory(Table, Generic[S]):
    """The methods that return snapshots, from the history in the newest metadata."""

    def snapshots(self, *, after: AnyPosition | None = None) -> list[S]:
        """Return the snapshots that have not expired, oldest first.

        With ``after`` only those after that position.
        """
        history = self._history()
        return [*history.snapshots] if after is None else history.between(after, None)

    def latest_snapshot(self, known: S | None = None) -> S | None:
        """Return the newest snapshot; None if there is none.

        If ``known`` is still the newest, it is returned. Metadata is read again only if it has
        changed.
        """
        found = self.snapshots()
        newest = found[-1] if found else None
        return known if newest == known else newest

    @abstractmethod
    def _history(self) -> History[S]: ...
