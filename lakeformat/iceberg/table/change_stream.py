# SPDX-License-Identifier: Apache-2.0
"""A stream of changes: its start position, the commits after it, and the reader's progress.

Nothing here waits: the reader decides when to poll again. Progress is stored only when the reader
acknowledges a snapshot, so after a crash it receives its unacknowledged snapshots again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.iceberg.branch_history import BranchHistory, BranchSnapshot, history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.read.appends import REPLACE
from lakeformat.iceberg.read.asked_rows import AskedRows
from lakeformat.iceberg.read.changed_rows import changed_rows
from lakeformat.iceberg.read.commit_changes import commit_changes
from lakeformat.iceberg.read.plan import TableState
from lakeformat.iceberg.table.consumers import TableConsumers
from lakeformat.tables.moment import to_millis
from lakeformat.tables.position import Position
from lakeformat.tables.stream import StreamBegin, StreamedChanges, StreamStart

__all__ = ["ChangeStream"]


class ChangeStream:
    """Delivers one commit after another; iteration ends when no newer one exists yet."""

    def __init__(
        self,
        handle: TableHandle,
        start: StreamStart,
        asked: AskedRows,
        consumer: str | None = None,
    ) -> None:
        self._handle = handle
        self._start = start
        self._asked = asked
        self._consumer = consumer
        self._consumers = TableConsumers(handle)
        self._after = None if consumer is None else self._consumers.position(consumer)
        self._full: BranchSnapshot | None = None
        if self._after is None:
            self._begin()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the delivered rows."""
        return self._asked.arrow_schema

    @property
    def position(self) -> Position | None:
        """The position up to which rows were delivered; None until the snapshot to read in full
        exists.
        """
        return self._after

    @property
    def next_snapshot(self) -> int | None:
        """The least sequence number of the next commit; None while ``position`` is None."""
        return None if self._after is None else self._after.number + 1

    def __iter__(self) -> Iterator[StreamedChanges]:
        return self

    def __next__(self) -> StreamedChanges:
        found = self.poll()
        if found is None:
            raise StopIteration
        return found

    def starts_at(self) -> StreamBegin:
        """Return the start position for a reader in another process; deliver no rows."""
        if self._after is None:
            self._begin()
        full = None if self._full is None else self._full.snapshot_id
        after = self._history().beginning if self._after is None else self._after
        return StreamBegin(after.number + 1, full, after)

    def poll(self) -> StreamedChanges | None:
        """Return the next commit with changes, or None if there is none yet.

        Commits that only move rows to other files are skipped.
        """
        if self._after is None:
            self._begin()
        if self._full is not None:
            full, self._full = self._full, None
            state = self._state(full.snapshot)
            rows = changed_rows(replace(state, snapshot=None), state, self._asked)
            return self._streamed(full, rows, full=True)
        if self._after is None:
            return None
        for each in self._following(self._after):
            rows = commit_changes(self._state(each.snapshot), self._asked)
            self._after = each.position
            if each.operation != REPLACE:
                return self._streamed(each, rows, full=False)
        return None

    def acknowledge(self) -> None:
        """Store that the reader has processed every commit delivered so far."""
        if self._consumer is None:
            raise InvalidRequestError(
                "this stream has no consumer to store its progress: pass consumer='<name>'"
            )
        if self._after is not None and self._full is None:
            self._consumers.move(self._consumer, self._after)

    def _begin(self) -> None:
        """Find the start position.

        A mode that begins with a full read has none until the snapshot to read in full exists.
        """
        history = self._history()
        newest = history.snapshots[-1] if history.snapshots else None
        match self._start.mode:
            case "latest-full":
                self._go_on_after(newest)
            case "compacted-full":
                moved = [each for each in history.snapshots if each.operation == REPLACE]
                self._go_on_after(moved[-1] if moved else newest)
            case "latest":
                self._after = history.head
            case "from-snapshot":
                self._after = self._chosen(history).position.before
            case "from-snapshot-full":
                self._go_on_after(self._chosen(history))
            case _:
                self._after = self._before_start_time(history)

    def _go_on_after(self, full: BranchSnapshot | None) -> None:
        if full is not None:
            self._full, self._after = full, full.position

    def _chosen(self, history: BranchHistory) -> BranchSnapshot:
        for each in history.snapshots:
            if each.snapshot_id == self._start.snapshot:
                return each
        raise NotFoundError(
            f"branch {history.branch!r} of {self._handle.uri} has no snapshot "
            f"{self._start.snapshot}: it may have expired; snapshots() lists those that are left"
        )

    def _before_start_time(self, history: BranchHistory) -> Position:
        """Return the position before the first commit at the start time or later."""
        assert self._start.as_of is not None
        millis = to_millis(self._start.as_of)
        for each in reversed(history.snapshots):
            if each.timestamp_ms < millis:
                return each.position
        return history.snapshots[0].position.before if history.snapshots else history.beginning

    def _following(self, after: Position) -> tuple[BranchSnapshot, ...]:
        history = self._history()
        since = history.since(after, None)
        if not (since.missed or since.rewound):
            return since.snapshots
        why = "have expired" if since.missed else "belong to a history that a rollback removed"
        delete = f"table.consumers.reset({self._consumer!r})"
        first = "" if self._consumer is None else f"First delete the consumer: {delete}. "
        raise NotFoundError(
            f"the commits that follow position {after} of {self._handle.uri} {why}. {first}Start "
            "the stream again with a full read. To keep snapshots for a slow reader, keep them "
            "longer, or keep one by a tag"
        )

    def _streamed(
        self, found: BranchSnapshot, rows: Iterator[pa.RecordBatch], *, full: bool
    ) -> StreamedChanges:
        return StreamedChanges(found.snapshot_id, found.position, self.schema, rows, full=full)

    def _state(self, snapshot: Snapshot) -> TableState:
        """Return a state that is read with the columns that the stream began with."""
        loaded = self._handle.load()
        return TableState(loaded.places, loaded.metadata, snapshot, self._asked.schema)

    def _history(self) -> BranchHistory:
        metadata = self._handle.load().metadata
        return history_of(metadata, self._handle.branch, self._handle.uri)
