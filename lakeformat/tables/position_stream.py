# SPDX-License-Identifier: Apache-2.0
"""The base class of the streams of Iceberg and Mixed tables.

The progress of such a stream is a ``Position``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import pyarrow as pa

from lakeformat.tables.consumers.position_consumers import PositionConsumers
from lakeformat.tables.listed_history import History
from lakeformat.tables.position import Position
from lakeformat.tables.stream import StreamBegin, StreamStart
from lakeformat.tables.table_snapshot import TableSnapshot
from lakeformat.tables.table_stream import TableStream

__all__ = ["PositionStream", "position_before"]

S = TypeVar("S", bound=TableSnapshot)


class PositionStream(TableStream[S, Position]):
    """A stream that delivers one commit after the other, and ends when there is no newer commit.

    Commits that change no row are skipped.
    """

    def __init__(
        self,
        start: StreamStart,
        schema: pa.Schema,
        consumers: PositionConsumers,
        consumer: str | None,
    ) -> None:
        self._consumers = consumers
        super().__init__(start, schema, consumer)

    @property
    def position(self) -> Position | None:
        """The position up to which rows were delivered.

        None while the stream waits for the first snapshot, whose rows it will deliver in full.
        """
        return self._place

    @property
    def next_snapshot(self) -> int | None:
        """The lowest sequence number that the next snapshot can have.

        A sequence number is not a snapshot id. In a Mixed table the next snapshot of the change
        store is meant. The value is None while ``position`` is None.
        """
        return None if self._place is None else self._place.numbers[0] + 1

    def starts_at(self) -> StreamBegin:
        """Return the beginning of the stream, so that another process can read the stream.

        This method reads no rows.
        """
        if self._place is None:
            self._begin()
        full = None if self._full is None else self._full.id
        after = self._history().beginning if self._place is None else self._place
        return StreamBegin(after.numbers[0] + 1, full, after)

    def _stored(self, consumer: str) -> Position | None:
        return self._consumers.position(consumer)

    def _store(self, consumer: str, place: Position) -> None:
        self._consumers.move(consumer, place)

    def _place_after(self, snapshot: S) -> Position:
        return snapshot.position

    @abstractmethod
    def _history(self) -> History[S]: ...


def position_before(history: History[S], millis: int) -> Position:
    """Return the position right after the last commit before ``millis`` (epoch milliseconds);
    without such a commit, the oldest position.
    """
    for each in reversed(history.snapshots):
        if each.time_millis < millis:
            return each.position
    return history.oldest
