# SPDX-License-Identifier: Apache-2.0
"""The consumers of a Mixed table: ``_lake/consumer/consumer-<id>`` below the base store."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.own_files import own_directory
from lakeformat.iceberg.table.consumers import ConsumersOfBranches
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.table.mixed_history import MixedHistory, mixed_history
from lakeformat.mixed.write.write_changes import change_handle
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.report import ConsumerState
from lakeformat.tables.consumers.table_consumers import AnyTableConsumers
from lakeformat.tables.past_time import PastTime
from lakeformat.tables.position import MAIN_BRANCH, Position
from lakeformat.tables.table import offer_arguments

__all__ = ["ConsumersOfPair", "MixedConsumers"]

_REMEDY = "delete the file, or set the consumer to the position up to which it has read"


@offer_arguments
class MixedConsumers(AnyTableConsumers[Position]):
    """The consumers of a Mixed table, each with the position up to which it has read."""

    _next_snapshot = "the sequence number of the snapshot of the change store"

    def __init__(self, pair: StorePair) -> None:
        super().__init__(pair.base.uri, pair.base.environment)
        self._pair = pair

    def list(self) -> list[ConsumerState]:
        """Return all consumers with their progress, by id."""
        history, found = self._history(), []
        for consumer_id, modified in self._files().modified():
            position = self.position(consumer_id)
            if position is None:
                continue
            since = history.since(position, None)
            number, behind = position.numbers[0] + 1, len(since.snapshots)
            found.append(
                ConsumerState(consumer_id, number, modified, behind, since.missed, position)
            )
        return found

    def describe_next(self, consumer_id: str, next_snapshot: int, *, dry_run: bool) -> str:
        """Return the effect of ``set`` or ``reset`` to ``next_snapshot`` as text for a person."""
        verb = "would read" if dry_run else "reads"
        return (
            f"consumer {consumer_id!r} {verb} the change store from sequence number "
            f"{next_snapshot} on"
        )

    def position(self, consumer_id: str) -> Position | None:
        """Return the position up to which a consumer has read; None if the consumer does not
        exist.
        """
        return self._files().read(consumer_id, self._parsed, _REMEDY, self._environment)

    def move(self, consumer_id: str, position: Position) -> None:
        """Store the position up to which a consumer has read, without checking it."""
        content = json.dumps({"position": str(position)})
        self._files().write(consumer_id, content.encode())

    def snapshots_from(self, position: Position) -> set[int]:
        """Return the ids of the snapshots of both stores at a position, and of all later ones."""
        change, base = position.numbers
        first = {"change": change, "base": base}
        return {
            each.snapshot_id
            for each in self._history().snapshots
            if each.number >= first[each.store]
        }

    def _read(self, consumer_id: str) -> Position | None:
        return self.position(consumer_id)

    def _write(self, consumer_id: str, place: Position) -> None:
        self.move(consumer_id, place)

    def _available(
        self, consumer_id: str, next_snapshot: int | None, after: Position | None
    ) -> Position:
        history = self._history()
        if after is None:
            if type(next_snapshot) is not int or next_snapshot < 1:
                raise InvalidRequestError(
                    f"next_snapshot must be {self._next_snapshot}, from 1 on, got {next_snapshot!r}"
                )
            base = [
                each.position.numbers[1]
                for each in history.snapshots
                if each.position.numbers[0] < next_snapshot
            ]
            after = Position((next_snapshot - 1, base[-1] if base else 0))
        return self._existing(history, consumer_id, history.parse(after))

    def _require_kept(self, consumer_id: str, place: Position) -> None:
        self._existing(self._history(), consumer_id, place)

    def _existing(self, history: MixedHistory, consumer_id: str, place: Position) -> Position:
        """Return the position; raise ``InvalidRequestError`` if changes cannot be read from
        there.
        """
        since = history.since(place, None)
        if since.missed or since.rewound:
            why = "of which snapshots have expired" if since.missed else "which it does not have"
            raise InvalidRequestError(
                f"consumer {consumer_id!r} cannot read {self._table} after position {place}, "
                f"{why}: read all rows with scan() once, then call "
                f"table.consumers.set({consumer_id!r}, after=table.position('{history.head}'))"
            )
        return place

    def _history(self) -> MixedHistory:
        return mixed_history(self._pair.load())

    def _files(self) -> ConsumerFiles:
        return ConsumerFiles(*own_directory(self._pair.base, "consumer"))

    def _parsed(self, members: Mapping[str, Any]) -> Position:
        found = Position.parse(members["position"])
        if len(found.numbers) != 2 or found.branch not in (None, MAIN_BRANCH):
            raise ValueError(f"position {found} does not have the numbers of both stores of 'main'")
        return replace(found, table=self._table)


@dataclass(frozen=True, slots=True)
class ConsumersOfPair:
    """The readers for which an expiry keeps snapshots: the consumers of a table, and batches of
    streams, which are consumers of its change store.
    """

    pair: StorePair

    def list(self) -> Sequence[ConsumerState]:
        """Return all consumers with their progress."""
        return [*MixedConsumers(self.pair).list(), *self._of_batches().list()]

    def expire(self, older_than: PastTime, *, dry_run: bool) -> Sequence[ConsumerState]:
        """Delete the consumers without progress since a time, and return them."""
        own = MixedConsumers(self.pair)
        listed = own.list()
        removed = own.expire(older_than=older_than, dry_run=dry_run).removed
        found = [each for each in listed if each.id in removed]
        return [*found, *self._of_batches().expire(older_than, dry_run=dry_run)]

    def unread(self, without: Collection[ConsumerState] = ()) -> set[int]:
        """Return the ids of the snapshots of both stores that consumers have not read yet.

        The consumers in ``without`` are ignored.
        """
        own = MixedConsumers(self.pair)
        found = self._of_batches().unread(without)
        for each in own.list():
            # One that has missed snapshots must read all rows again, so nothing is kept for it.
            if not each.is_stale and each not in without:
                found |= own.snapshots_from(each.position)
        return found

    def _of_batches(self) -> ConsumersOfBranches:
        return ConsumersOfBranches(change_handle(self.pair))
