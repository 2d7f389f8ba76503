# SPDX-License-Identifier: Apache-2.0
"""Streams of changes, which return one snapshot after the other and store the reader's progress.

A stream never waits: the reader decides when it polls again. Progress is stored only when the
reader acknowledges a snapshot. After a crash the reader gets all unacknowledged snapshots again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.tables.stream import StreamedChanges, StreamStart
from lakeformat.tables.table_snapshot import TableSnapshot

__all__ = ["TableStream"]

SnapshotT = TypeVar("SnapshotT", bound=TableSnapshot)
PlaceT = TypeVar("PlaceT")
"""The progress of a consumer in the form that the table format stores."""


class TableStream(ABC, Generic[SnapshotT, PlaceT]):
    """A stream that returns one snapshot after the other, and ends when there is no newer
    snapshot.
    """

    def __init__(self, start: StreamStart, schema: pa.Schema, consumer: str | None) -> None:
        self._start = start
        self._schema = schema
        self._consumer = consumer
        self._full: SnapshotT | None = None
        self._place: PlaceT | None = None if consumer is None else self._stored(consumer)
        if self._place is None:
            self._begin()

    @property
    def schema(self) -> pa.Schema:
        """The schema of the returned rows."""
        return self._schema

    def __iter__(self) -> Iterator[StreamedChanges]:
        return self

    def __next__(self) -> StreamedChanges:
        found = self.poll()
        if found is None:
            raise StopIteration
        return found

    def poll(self) -> StreamedChanges | None:
        """Return the next snapshot with changes; None if no such snapshot exists yet.

        Snapshots without changed rows are skipped.
        """
        if self._place is None:
            self._begin()
        if self._full is not None:
            full, self._full = self._full, None
            return self._streamed(full, self._all_rows(full), full=True)
        return None if self._place is None else self._next_changes(self._place)

    def acknowledge(self) -> None:
        """Store that the reader has processed all snapshots returned so far.

        From then on the expiry keeps all later snapshots for this consumer. Without a consumer
        ``InvalidRequestError`` is raised.
        """
        if self._consumer is None:
            raise InvalidRequestError(
                "this stream has no consumer to store its progress: open it with "
                "table.stream(consumer='<name>')"
            )
        if self._place is not None and self._full is None:
            self._store(self._consumer, self._place)

    def _begin(self) -> None:
        """Find the position at which the stream starts.

        If the snapshot to read in full does not exist yet, the stream has no position, and the next
        poll looks again.
        """
        if not self._start.mode.endswith("-full"):
            self._place = self._first_place(self._start)
            return
        self._full = self._first_full(self._start)
        if self._full is not None:
            self._place = self._place_after(self._full)

    def _streamed(
        self, found: SnapshotT, rows: Iterator[pa.RecordBatch], *, full: bool
    ) -> StreamedChanges:
        return StreamedChanges(found.id, found.position, self._schema, rows, full=full)

    @abstractmethod
    def _stored(self, consumer: str) -> PlaceT | None:
        """Return the stored progress of a consumer; None if the consumer does not exist."""

    @abstractmethod
    def _store(self, consumer: str, place: PlaceT) -> None:
        """Store the progress of a consumer."""

    @abstractmethod
    def _first_full(self, start: StreamStart) -> SnapshotT | None:
        """Return the snapshot that the stream reads in full; None if it does not exist yet."""

    @abstractmethod
    def _first_place(self, start: StreamStart) -> PlaceT:
        """Return the progress with which a stream without a full read starts."""

    @abstractmethod
    def _place_after(self, snapshot: SnapshotT) -> PlaceT:
        """Return the progress of a reader that has read this snapshot."""

    @abstractmethod
    def _all_rows(self, snapshot: SnapshotT) -> Iterator[pa.RecordBatch]:
        """Read all rows of a snapshot."""

    @abstractmethod
    def _next_changes(self, place: PlaceT) -> StreamedChanges | None:
        """Return the changes of the next snapshot after ``place``; skip snapshots without changes.

        Return None if no such snapshot exists yet. In both cases move the progress of the stream
        past the snapshots that were read.
        """
