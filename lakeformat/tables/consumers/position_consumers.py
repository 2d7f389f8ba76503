# SPDX-License-Identifier: Apache-2.0
"""Consumers whose progress is a position, in tables whose metadata lists all snapshots."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.consumers.report import ConsumerState
from lakeformat.tables.consumers.table_consumers import AnyTableConsumers
from lakeformat.tables.listed_history import History
from lakeformat.tables.past_time import PastTime
from lakeformat.tables.position import Position

__all__ = ["ConsumersOfTable", "PositionConsumers", "read_all_rows"]

_REMEDY = "delete the file, or set the consumer to the position up to which it has read"


class PositionConsumers(AnyTableConsumers[Position]):
    """The consumers of one branch, each with the position up to which it has read."""

    def list(self) -> list[ConsumerState]:
        """Return all consumers with their progress."""
        return [*self._listed(self._history())]

    def unread(
        self, without: Collection[ConsumerState], removed_branches: Collection[str] = ()
    ) -> set[int]:
        """Return the ids of the snapshots that consumers have not read yet; see
        ``ConsumersOfTable``.
        """
        history = self._history()
        unread: set[int] = set()
        for consumer in self._listed(history):
            # A consumer whose next snapshot has expired must read all rows again, so nothing is
            # kept for it.
            if consumer.is_stale or consumer in without:
                continue
            if consumer.position.branch not in removed_branches:
                unread |= self._ids_from(history, consumer.position)
        return unread

    def _listed(self, history: History[Any]) -> Sequence[ConsumerState]:
        files, found = self._files(), []
        for consumer_id, modified in files.modified():
            position = files.read(consumer_id, self._parsed, _REMEDY, self._environment)
            if position is None:
                continue
            since = history.since(position, None)
            number, behind = position.numbers[0] + 1, len(since.snapshots)
            found.append(
                ConsumerState(consumer_id, number, modified, behind, since.missed, position)
            )
        return found

    def position(self, consumer_id: str) -> Position | None:
        """Return the position up to which a consumer has read; None if the consumer does not
        exist.
        """
        return self._files().read(consumer_id, self._parsed, _REMEDY, self._environment)

    def move(self, consumer_id: str, position: Position) -> None:
        """Store the position up to which a consumer has read, without checking it."""
        content = json.dumps({"position": str(position)})
        self._files().write(consumer_id, content.encode())

    @abstractmethod
    def _history(self) -> History[Any]: ...

    @abstractmethod
    def _ids_from(self, history: Any, position: Position) -> set[int]:
        """Return the ids of the snapshot at a position and of all later snapshots."""

    def _read(self, consumer_id: str) -> Position | None:
        return self.position(consumer_id)

    def _write(self, consumer_id: str, place: Position) -> None:
        self.move(consumer_id, place)

    def _rewound(self, consumer_id: str, read: Position) -> Position:
        return read

    def _parsed(self, members: Mapping[str, Any]) -> Position:
        return replace(Position.parse(members["position"]), table=self._table)

    def _require_number(self, next_snapshot: object) -> int:
        if type(next_snapshot) is not int or next_snapshot < 1:
            raise InvalidRequestError(
                f"next_snapshot must be {self._next_snapshot} that the consumer reads next, at "
                f"least 1, got {next_snapshot!r}"
            )
        return next_snapshot


@dataclass(frozen=True, slots=True)
class ConsumersOfTable:
    """All consumers of a table; an expiry keeps snapshots for them."""

    groups: Callable[[], Iterable[PositionConsumers]]
    """Returns the consumers of each branch or store."""

    def list(self) -> Sequence[ConsumerState]:
        """Return all consumers with their progress."""
        return [each for group in self.groups() for each in group.list()]

    def expire(self, older_than: PastTime, *, dry_run: bool) -> Sequence[ConsumerState]:
        """Delete the consumers without progress since a time, and return them; a dry run only
        returns them.
        """
        expired: list[ConsumerState] = []
        for group in self.groups():
            listed = group.list()
            removed = group.expire(older_than=older_than, dry_run=dry_run).removed
            expired += [each for each in listed if each.id in removed]
        return expired

    def unread(
        self, removed_branches: Collection[str] = (), *, without: Collection[ConsumerState] = ()
    ) -> set[int]:
        """Return the ids of the snapshots that consumers have not read yet.

        The snapshot at the position of a consumer is included, because the next changes are
        computed as the difference to that snapshot.

        Three kinds of consumers are ignored: those in ``without``, those of ``removed_branches``,
        and those whose next snapshot has expired.
        """
        return {each for group in self.groups() for each in group.unread(without, removed_branches)}


def read_all_rows(consumer_id: str, head: Position) -> str:
    """Return the advice to read all rows at ``head``, and after that only the later changes."""
    return (
        f"Read all rows once, and the changes after them: at = table.position('{head}'); "
        f"table.scan(snapshot=at); table.consumers.set({consumer_id!r}, after=at)"
    )
