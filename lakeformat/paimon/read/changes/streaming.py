# SPDX-License-Identifier: Apache-2.0
"""A stream of changes: its start position, the snapshots after it, and the reader's progress.

Nothing here waits: the reader decides when to poll again. Progress is stored only when the reader
acknowledges a snapshot, so after a crash it receives its unacknowledged snapshots again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import require_branch_still
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.paimon.metadata.consumer import Consumer, read_consumer, write_consumer
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    latest_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.read.changes.files import (
    NO_PRODUCER,
    ChangedFiles,
    ChangeFiles,
    changelog_producer,
)
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.changes.state_rows import StateRows
from lakeformat.paimon.read.time_travel import newest_at, newest_compacted
from lakeformat.paimon.snapshot_positions import position_at
from lakeformat.tables.moment import to_millis
from lakeformat.tables.stream import StreamBegin, StreamedChanges, StreamStart

__all__ = ["ChangeStream", "lowest_streamed_level"]

_LOOKUP, _FULL_COMPACTION = "lookup", "full-compaction"


class ChangeStream:
    """Delivers one snapshot after another; iteration ends when no newer snapshot exists yet."""

    def __init__(
        self,
        handle: TableHandle,
        start: StreamStart,
        asked: ChangedRows,
        consumer: str | None = None,
    ) -> None:
        self._handle = handle
        self._start = start
        self._asked = asked
        self._files = ChangeFiles(handle, asked)
        self._consumer = consumer
        self._uses_delta = changelog_producer(handle) == NO_PRODUCER
        self._next = self._stored_progress()
        self._full: Snapshot | None = None
        if self._next is None:
            self._begin()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the delivered rows."""
        return self._asked.schema

    @property
    def next_snapshot(self) -> int | None:
        """The next snapshot to read for changes; None until the snapshot to read in full exists."""
        return self._next

    def __iter__(self) -> Iterator[StreamedChanges]:
        return self

    def __next__(self) -> StreamedChanges:
        found = self.poll()
        if found is None:
            raise StopIteration
        return found

    def starts_at(self) -> StreamBegin:
        """Return the start position for a reader in another process; deliver no rows."""
        if self._next is None and self._full is None:
            self._begin()
        full = None if self._full is None else self._full.id
        following = FIRST_SNAPSHOT_ID if self._next is None else self._next
        return StreamBegin(following, full, position_at(self._handle, following - 1))

    def poll(self) -> StreamedChanges | None:
        """Return the next snapshot with changes, or None if there is none yet.

        Snapshots without changes are skipped.
        """
        if self._next is None and self._full is None:
            self._begin()
        if self._full is not None:
            full, self._full = self._full, None
            return _streamed(full, self.schema, self._state(full), full=True)
        while self._next is not None and (snapshot := self._read(self._next)) is not None:
            self._next += 1
            if self._files.reads_overwrite(snapshot):
                find = self._files.overwrite
            elif self._uses_delta and snapshot.commit_kind is CommitKind.APPEND:
                find = self._files.delta
            elif not self._uses_delta and snapshot.changelog_manifest_list is not None:
                find = self._files.changelog
            else:
                continue
            rows = self._rows(find, snapshot)
            return _streamed(snapshot, self.schema, rows, full=False)
        return None

    def acknowledge(self) -> None:
        """Store that the reader has processed every snapshot delivered so far.

        The expiry then keeps all later snapshots for this consumer.
        """
        if self._consumer is None:
            raise InvalidRequestError(
                "this stream has no consumer to store its progress: pass consumer='<name>'"
            )
        if self._next is not None and self._full is None:
            progress = Consumer(self._consumer, self._next)
            require_branch_still(self._handle.storage, self._handle.layout)
            write_consumer(self._handle.storage, self._handle.layout, progress)

    def _stored_progress(self) -> int | None:
        if self._consumer is None:
            return None
        handle = self._handle
        found = read_consumer(handle.storage, handle.layout, self._consumer, handle.environment)
        return None if found is None else found.next_snapshot

    def _begin(self) -> None:
        """Find the start position.

        A mode that begins with a full read has none until the snapshot to read in full exists.
        """
        latest = latest_snapshot(self._handle.storage, self._handle.layout)
        match self._start.mode:
            case "latest-full":
                self._go_on_after(latest)
            case "compacted-full":
                self._go_on_after(newest_compacted(self._handle) or latest)
            case "latest":
                self._next = FIRST_SNAPSHOT_ID if latest is None else latest.id + 1
            case "from-snapshot":
                self._next = self._at_least_earliest()
            case "from-snapshot-full":
                self._go_on_after(self._read(self._at_least_earliest()))
            case _:
                self._next = self._first_at()

    def _go_on_after(self, full: Snapshot | None) -> None:
        if full is not None:
            self._full, self._next = full, full.id + 1

    def _at_least_earliest(self) -> int:
        assert self._start.snapshot is not None
        return max(self._start.snapshot, self._earliest())

    def _first_at(self) -> int:
        """Return the first snapshot at the start time or later, or the earliest one left."""
        assert self._start.as_of is not None
        before = newest_at(self._handle, to_millis(self._start.as_of) - 1)
        return self._earliest() if before is None else before.id + 1

    def _read(self, number: int) -> Snapshot | None:
        """Read a snapshot or its changelog; None if it does not exist yet."""
        handle = self._handle
        found = read_snapshot_if_present(handle.storage, handle.layout, number)
        if found is not None:
            return found
        if number in changelog_ids(handle.storage, handle.layout):
            return read_changelog(handle.storage, handle.layout, number)
        ids = snapshot_ids(handle.storage, handle.layout)
        if not ids or number > ids[-1]:
            return None
        raise NotFoundError(
            f"snapshot {number} of {handle.uri} is next in this stream and has expired: the "
            f"earliest one left is {self._earliest()}. Start again from that snapshot or with a "
            "full read, and give the stream a consumer: the expiry keeps unread snapshots for "
            "consumers"
        )

    def _earliest(self) -> int:
        storage, layout = self._handle.storage, self._handle.layout
        ids = [*changelog_ids(storage, layout), *snapshot_ids(storage, layout)]
        return min(ids, default=FIRST_SNAPSHOT_ID)

    def _rows(
        self, find: Callable[[Snapshot], ChangedFiles], snapshot: Snapshot
    ) -> Iterator[pa.RecordBatch]:
        yield from self._files.rows(find(snapshot))

    def _state(self, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        """Read the full state without rows that a later compaction delivers as changelog."""
        least = lowest_streamed_level(self._handle)
        rows = StateRows(self._handle, snapshot, self._asked, least_level=least, with_streamed=True)
        return rows.read()


def _streamed(
    snapshot: Snapshot, schema: pa.Schema, rows: Iterator[pa.RecordBatch], *, full: bool
) -> StreamedChanges:
    return StreamedChanges(snapshot.id, snapshot.position, schema, rows, full=full)


def lowest_streamed_level(handle: TableHandle) -> int:
    """Return the lowest level whose rows the changelog has delivered already."""
    if not handle.schema.primary_keys:
        return 0
    highest = handle.options.level_count - 1
    return {_LOOKUP: 1, _FULL_COMPACTION: highest}.get(changelog_producer(handle), 0)
