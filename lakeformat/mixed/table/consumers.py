# SPDX-License-Identifier: Apache-2.0
"""The consumers of a Mixed table: ``_lake/consumer/<uuid>/consumer-<id>`` below the base store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.table.consumers import consumers_of_branches
from lakeformat.iceberg.table.own_consumers import own_consumers
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.table.mixed_history import MixedHistory, mixed_history
from lakeformat.mixed.write.write_changes import change_handle
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.position_consumers import (
    ConsumersOfTable,
    PositionConsumers,
    read_all_rows,
)
from lakeformat.tables.position import MAIN_BRANCH, Position
from lakeformat.tables.table import offer_arguments

__all__ = ["MixedConsumers", "consumers_of_pair"]


@offer_arguments
class MixedConsumers(PositionConsumers):
    """The consumers of a Mixed table, each with the position up to which it has read."""

    _next_snapshot = "the sequence number of the snapshot of the change store"

    def __init__(self, pair: StorePair) -> None:
        super().__init__(pair.base.uri, pair.base.environment)
        self._pair = pair

    def describe_next(self, consumer_id: str, next_snapshot: int, *, dry_run: bool) -> str:
        """Return the effect of ``set`` or ``reset`` to ``next_snapshot`` as text for a person."""
        verb = "would read" if dry_run else "reads"
        return (
            f"consumer {consumer_id!r} {verb} the change store from sequence number "
            f"{next_snapshot} on"
        )

    def _available(
        self, consumer_id: str, next_snapshot: int | None, after: Position | None
    ) -> Position:
        history = self._history()
        if after is None:
            number = self._require_number(next_snapshot)
            base = [
                each.position.numbers[1]
                for each in history.snapshots
                if each.position.numbers[0] < number
            ]
            after = Position((number - 1, base[-1] if base else 0))
        return self._existing(history, consumer_id, history.parse(after))

    def _require_kept(self, consumer_id: str, place: Position) -> None:
        self._existing(self._history(), consumer_id, place)

    def _existing(self, history: MixedHistory, consumer_id: str, place: Position) -> Position:
        """Return ``place``; raise ``InvalidRequestError`` if changes after it cannot be read."""
        since = history.since(place, None)
        if since.missed or since.rewound:
            why = "snapshots after it have expired" if since.missed else "no such position exists"
            raise InvalidRequestError(
                f"consumer {consumer_id!r} cannot read {self._table} after position {place}: "
                f"{why}. {read_all_rows(consumer_id, history.head)}"
            )
        return place

    def _history(self) -> MixedHistory:
        return mixed_history(self._pair.load())

    def _ids_from(self, history: MixedHistory, position: Position) -> set[int]:
        change, base = position.numbers
        first = {"change": change, "base": base}
        return {each.snapshot_id for each in history.snapshots if each.number >= first[each.store]}

    def _files(self) -> ConsumerFiles:
        return own_consumers(self._pair.base, change_handle(self._pair))

    def _parsed(self, members: Mapping[str, Any]) -> Position:
        found = super()._parsed(members)
        if len(found.numbers) != 2 or found.branch not in (None, MAIN_BRANCH):
            raise ValueError(
                f"position {found} must have the sequence numbers of both stores, and no branch "
                f"other than {MAIN_BRANCH!r}"
            )
        return found


def consumers_of_pair(pair: StorePair) -> ConsumersOfTable:
    """Return the readers for which an expiry keeps snapshots.

    They are the consumers of the Mixed table, and those of its change store. A running
    ``stream_batch`` has a consumer of the change store.
    """

    def groups() -> Iterator[PositionConsumers]:
        yield MixedConsumers(pair)
        yield from consumers_of_branches(change_handle(pair)).groups()

    return ConsumersOfTable(groups)
