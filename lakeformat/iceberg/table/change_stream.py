# SPDX-License-Identifier: Apache-2.0
"""A stream of the changes of a branch, commit by commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lakeformat.errors import NotFoundError
from lakeformat.iceberg.branch_history import (
    BranchHistory,
    BranchSnapshot,
    history_of,
    no_snapshot,
)
from lakeformat.iceberg.choice import newest_at
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
from lakeformat.tables.position_stream import PositionStream, position_before
from lakeformat.tables.stream import StreamedChanges, StreamStart

__all__ = ["ChangeStream"]


_KEEP_LONGER = (
    ". For a slow reader keep snapshots longer, with the table property "
    "'history.expire.max-snapshot-age-ms'"
)


class ChangeStream(PositionStream[BranchSnapshot]):
    """Delivers one commit after the other; commits that only rewrite files are skipped."""

    def __init__(
        self,
        handle: TableHandle,
        start: StreamStart,
        asked: AskedRows,
        consumer: str | None = None,
    ) -> None:
        self._handle = handle
        self._asked = asked
        super().__init__(start, asked.arrow_schema, TableConsumers(handle), consumer)

    def _next_changes(self, place: Position) -> StreamedChanges | None:
        for each in self._following(place):
            rows = commit_changes(self._state(each.snapshot), self._asked)
            self._place = each.position
            if each.operation != REPLACE:
                return self._streamed(each, rows, full=False)
        return None

    def _first_full(self, start: StreamStart) -> BranchSnapshot | None:
        history = self._history()
        if start.mode == "from-snapshot-full":
            return self._chosen(history)
        found = history.snapshots
        if start.mode == "compacted-full":
            found = tuple(each for each in found if each.operation == REPLACE) or found
        return found[-1] if found else None

    def _first_place(self, start: StreamStart) -> Position:
        history = self._history()
        if start.mode == "from-snapshot":
            return self._chosen(history).position.before
        if start.as_of is None:
            return history.head
        return self._before(history, to_millis(start.as_of))

    def _before(self, history: BranchHistory, millis: int) -> Position:
        """Return the position from which a stream reads the changes since a time.

        This is the position after the commit that was the newest of the branch just before the
        time. If the branch no longer has that commit, for example after a rollback, its newest
        ancestor in the branch takes its place. If the branch has no such ancestor, the commit
        times decide. If no commit is known from before the time, return the oldest position.
        """
        metadata = self._handle.load().metadata
        found = newest_at(metadata, history, millis - 1)
        if found is None:
            return history.oldest
        left = {each.snapshot_id: each for each in history.snapshots}
        for each in metadata.ancestry(found):
            if each.snapshot_id in left:
                return left[each.snapshot_id].position
        return position_before(history, millis)

    def _all_rows(self, snapshot: BranchSnapshot) -> Iterator[pa.RecordBatch]:
        state = self._state(snapshot.snapshot)
        return changed_rows(replace(state, snapshot=None), state, self._asked)

    def _chosen(self, history: BranchHistory) -> BranchSnapshot:
        for each in history.snapshots:
            if each.snapshot_id == self._start.snapshot:
                return each
        raise no_snapshot(f"branch {history.branch!r} of {self._handle.uri}", self._start.snapshot)

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
            f"the stream again with a full read{_KEEP_LONGER if since.missed else ''}"
        )

    def _state(self, snapshot: Snapshot) -> TableState:
        """Return the state of a snapshot, with the columns that the table had when the stream
        began.
        """
        loaded = self._handle.load()
        return TableState(loaded.places, loaded.metadata, snapshot, self._asked.schema)

    def _history(self) -> BranchHistory:
        metadata = self._handle.load().metadata
        return history_of(metadata, self._handle.branch, self._handle.uri)
