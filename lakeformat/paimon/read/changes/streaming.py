# SPDX-License-Identifier: Apache-2.0
"""The stream of a table's changes, snapshot by snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lakeformat.errors import NotFoundError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import require_branch_still
from lakeformat.paimon.metadata.changelog_directory import changelog_ids, read_changelog
from lakeformat.paimon.metadata.consumer import Consumer, read_consumer, write_consumer
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    latest_snapshot,
    latest_snapshot_id,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.read.changes.files import (
    ChangedFiles,
    ChangeFiles,
    changelog_producer,
    with_producer_at,
)
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.changes.state_rows import StateRows
from lakeformat.paimon.read.time_travel import newest_at, newest_compacted
from lakeformat.paimon.snapshot_positions import position_at
from lakeformat.tables.moment import to_millis
from lakeformat.tables.stream import StreamBegin, StreamedChanges, StreamStart
from lakeformat.tables.table_stream import TableStream

__all__ = ["ChangeStream", "lowest_streamed_level"]

_LOOKUP, _FULL_COMPACTION = "lookup", "full-compaction"


class ChangeStream(TableStream[Snapshot, int]):
    """Delivers the changes of one snapshot after another, until there is no newer snapshot."""

    def __init__(
        self,
        handle: TableHandle,
        start: StreamStart,
        asked: ChangedRows,
        consumer: str | None = None,
    ) -> None:
        self._handle = handle
        self._asked = asked
        self._files = ChangeFiles(handle, asked)
        self._last: Snapshot | None = None
        """The snapshot right before ``next_snapshot``, as this stream read it; None if unknown."""
        super().__init__(start, asked.schema, consumer)

    @property
    def next_snapshot(self) -> int | None:
        """The id of the next snapshot to read for changes.

        None while the stream waits for the first snapshot, whose rows it reads in full.
        """
        return self._place

    def starts_at(self) -> StreamBegin:
        """Return the position at which a reader in another process starts; no rows are read."""
        if self._place is None:
            self._begin()
        full = None if self._full is None else self._full.id
        following = FIRST_SNAPSHOT_ID if self._place is None else self._place
        return StreamBegin(following, full, position_at(self._handle, following - 1))

    def _next_changes(self, place: int) -> StreamedChanges | None:
        is_checked = False
        while (snapshot := self._read(place)) is not None:
            if not is_checked:  # after the read, so that a rollback before it is noticed
                self._require_same_history()
                is_checked = True
            self._place = place = self._place_after(snapshot)
            uses_delta = self._files.uses_delta(snapshot)
            if self._files.reads_overwrite(snapshot):
                find = self._files.overwrite
            elif snapshot.commit_kind is CommitKind.APPEND and (
                uses_delta or self._files.is_from_before(snapshot)
            ):
                find = self._files.delta
            elif not uses_delta and snapshot.changelog_manifest_list is not None:
                find = self._files.changelog
            else:
                continue
            return self._streamed(snapshot, self._rows(find, snapshot), full=False)
        return None

    def _stored(self, consumer: str) -> int | None:
        handle = self._handle
        found = read_consumer(handle.storage, handle.layout, consumer, handle.environment)
        if found is None:
            return None
        before = found.next_snapshot - 1
        self._last = read_snapshot_if_present(handle.storage, handle.layout, before)
        if self._last is None and before > (
            latest_snapshot_id(handle.storage, handle.layout) or 0
        ):  # another engine rolled the table back, and left the consumer where it was
            raise self._another_history(before)
        if self._last is not None and found.position is not None:
            # a rollback of this library moves only the next snapshot, and the stream goes on
            is_moved = found.position.number != before
            if not is_moved and found.position.identity not in (None, self._last.identity):
                raise self._another_history(before)
        return found.next_snapshot

    def _store(self, consumer: str, place: int) -> None:
        require_branch_still(self._handle.storage, self._handle.layout)
        self._require_same_history()  # a rollback sets the consumer back
        write_consumer(self._handle.storage, self._handle.layout, Consumer(consumer, place))

    def _first_full(self, start: StreamStart) -> Snapshot | None:
        if start.mode == "from-snapshot-full":
            return self._read(self._at_least_earliest(start))
        compacted = newest_compacted(self._handle) if start.mode == "compacted-full" else None
        return compacted or latest_snapshot(self._handle.storage, self._handle.layout)

    def _first_place(self, start: StreamStart) -> int:
        if start.mode == "from-snapshot":
            return self._at_least_earliest(start)
        if start.as_of is not None:
            before = newest_at(self._handle, to_millis(start.as_of) - 1)
            return self._earliest() if before is None else self._place_after(before)
        latest = latest_snapshot(self._handle.storage, self._handle.layout)
        return FIRST_SNAPSHOT_ID if latest is None else self._place_after(latest)

    def _place_after(self, snapshot: Snapshot) -> int:
        """Return the number after ``snapshot``, and keep this snapshot as the last one read."""
        self._last = snapshot
        return snapshot.id + 1

    def _at_least_earliest(self, start: StreamStart) -> int:
        assert start.snapshot is not None
        return max(start.snapshot, self._earliest())

    def _read(self, number: int) -> Snapshot | None:
        """Return a snapshot or, if it has expired, its changelog; None if it does not exist yet.

        Raise NotFoundError if the changelog has expired, too.
        """
        handle = self._handle
        found = read_snapshot_if_present(handle.storage, handle.layout, number)
        if found is not None:
            return found
        if number in changelog_ids(handle.storage, handle.layout):
            return read_changelog(handle.storage, handle.layout, number)
        ids = snapshot_ids(handle.storage, handle.layout)
        if not ids or number > ids[-1]:
            if self._last is not None and max(ids, default=0) < self._last.id:
                raise self._another_history(self._last.id)
            return None
        earliest, consumer = self._earliest(), self._consumer
        advice = (
            "Start again from that snapshot or with a full read, and give the stream a consumer: "
            "the expiry keeps unread snapshots for consumers"
        )
        if consumer is not None:
            advice = (
                "To skip the expired changes, call table.consumers.reset("
                f"{consumer!r}, next_snapshot={earliest}), and start the stream again. To read "
                f"all rows instead, call table.consumers.reset({consumer!r}), and start the "
                "stream again with a full read"
            )
        raise NotFoundError(
            f"snapshot {number} of {handle.uri} is next in this stream and has expired: the "
            f"earliest snapshot left is {earliest}. {advice}"
        )

    def _require_same_history(self) -> None:
        """Raise NotFoundError if a rollback has removed the last snapshot that was read.

        An expired snapshot is no error.
        """
        last, storage, layout = self._last, self._handle.storage, self._handle.layout
        if last is None:
            return
        found = read_snapshot_if_present(storage, layout, last.id)
        if found is None:
            is_same = (latest_snapshot_id(storage, layout) or 0) >= last.id
        else:
            is_same = found.identity == last.identity
        if not is_same:
            raise self._another_history(last.id)

    def _another_history(self, last: int) -> NotFoundError:
        first = ""
        if self._consumer is not None:
            delete = f"table.consumers.reset({self._consumer!r})"
            first = f"The consumer was not moved. Delete it: {delete}. "
        return NotFoundError(
            f"this stream has read {self._handle.uri} up to snapshot {last}, which the table no "
            f"longer has: the table was rolled back or recreated. {first}Start the stream again "
            "with a full read"
        )

    def _earliest(self) -> int:
        storage, layout = self._handle.storage, self._handle.layout
        ids = [*changelog_ids(storage, layout), *snapshot_ids(storage, layout)]
        return min(ids, default=FIRST_SNAPSHOT_ID)

    def _rows(
        self, find: Callable[[Snapshot], ChangedFiles], snapshot: Snapshot
    ) -> Iterator[pa.RecordBatch]:
        yield from self._files.rows(find(snapshot))

    def _all_rows(self, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a snapshot, without rows that a later compaction delivers as
        changelog.
        """
        handle = with_producer_at(self._handle, snapshot)
        least = lowest_streamed_level(handle)
        rows = StateRows(handle, snapshot, self._asked, least_level=least, with_streamed=True)
        return rows.read()


def lowest_streamed_level(handle: TableHandle) -> int:
    """Return the lowest level that the first full read of a stream includes.

    The rows of lower levels are delivered later, as the changelog of a compaction.
    """
    if not handle.schema.primary_keys:
        return 0
    highest = handle.options.level_count - 1
    return {_LOOKUP: 1, _FULL_COMPACTION: highest}.get(changelog_producer(handle), 0)
