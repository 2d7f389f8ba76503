# SPDX-License-Identifier: Apache-2.0
"""Lists, moves and deletes consumers."""

from __future__ import annotations

from lakeformat.errors import CorruptTableError, InvalidRequestError, LakeError
from lakeformat.paimon.consumers.progress import available_ids
from lakeformat.paimon.deletion.intent import refuse_if_expiring
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import require_branch_still
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.consumer import (
    Consumer,
    consumer_files,
    delete_consumer,
    read_consumer,
    write_consumer,
)
from lakeformat.paimon.metadata.snapshot_directory import FIRST_SNAPSHOT_ID
from lakeformat.paimon.snapshot_positions import position_at, require_number, snapshot_number
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.report import ConsumerReport, ConsumerState
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.position import Position

__all__ = ["TableConsumers", "expire_consumers", "files_of"]


class TableConsumers:
    """The consumers of one table; snapshots they have not read do not expire."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    def list(self) -> list[ConsumerState]:
        """Return every consumer with its progress, by id."""
        handle = self._handle
        ids = available_ids(handle)
        earliest, latest = min(ids, default=FIRST_SNAPSHOT_ID), max(ids, default=0)
        found = []
        for consumer_id, modified in files_of(handle).modified():
            consumer = read_consumer(handle.storage, handle.layout, consumer_id, handle.environment)
            if consumer is None:
                continue
            number = consumer.next_snapshot
            behind = max(latest + 1 - number, 0)
            read, is_stale = position_at(handle, number - 1), number < earliest
            found.append(ConsumerState(consumer.id, number, modified, behind, is_stale, read))
        return found

    def set(
        self,
        consumer_id: str,
        *,
        next_snapshot: int | None = None,
        after: Position | None = None,
        dry_run: bool = False,
    ) -> None:
        """Set the next snapshot of a consumer: this and later ones are kept from now on.

        Pass ``next_snapshot``, the number of the snapshot it reads next, or ``after``, the
        position up to which it has read.

        Refused if that snapshot has expired; the error names the earliest one. Refused, too, if it
        is later than the one that the next commit makes. A dry run only checks this.
        """
        handle = self._handle
        if (next_snapshot is None) is (after is None):
            raise InvalidRequestError(
                "pass either next_snapshot=, the number of the snapshot that the consumer reads "
                "next, or after=, the position up to which it has read"
            )
        if after is not None:
            what = "after must be the position up to which the consumer has read"
            next_snapshot = snapshot_number(handle, what, after) + 1
        require_number("next_snapshot must be the number of a snapshot", next_snapshot)
        assert next_snapshot is not None
        self._require_available(consumer_id, next_snapshot)
        storage, layout = handle.storage, handle.layout
        require_branch_still(storage, layout)
        before = self._before(consumer_id)
        if dry_run:
            self._require_kept(consumer_id, next_snapshot)
            return
        write_consumer(storage, layout, Consumer(consumer_id, next_snapshot))
        try:
            self._require_kept(consumer_id, next_snapshot)
        except LakeError:
            if before is None:
                delete_consumer(storage, layout, consumer_id)
            else:
                write_consumer(storage, layout, before)
            raise

    def reset(
        self, consumer_id: str, *, next_snapshot: int | None = None, dry_run: bool = False
    ) -> None:
        """Move an existing consumer, or delete it if ``next_snapshot`` is None."""
        handle = self._handle
        there = read_consumer(handle.storage, handle.layout, consumer_id, handle.environment)
        if there is None:
            raise files_of(handle).unknown(consumer_id, handle.uri)
        if next_snapshot is not None:
            self.set(consumer_id, next_snapshot=next_snapshot, dry_run=dry_run)
        elif not dry_run:
            delete_consumer(handle.storage, handle.layout, consumer_id)

    def clear(
        self, *, including: str = ".*", excluding: str | None = None, dry_run: bool = False
    ) -> ConsumerReport:
        """Delete consumers whose whole id matches ``including`` and not ``excluding``."""
        files = files_of(self._handle)
        return files.clear(self._handle.uri, including, excluding, dry_run=dry_run)

    def expire(self, *, older_than: PastTime, dry_run: bool = False) -> ConsumerReport:
        """Delete the consumers that have made no progress since a time in the past."""
        now = self._handle.environment.now_millis()
        before = past_millis("older_than", older_than, now)
        return expire_consumers(self._handle, older_than=before, dry_run=dry_run)

    def _before(self, consumer_id: str) -> Consumer | None:
        """Return the existing consumer; None for a truncated file, which is replaced."""
        handle = self._handle
        try:
            return read_consumer(handle.storage, handle.layout, consumer_id, handle.environment)
        except CorruptTableError:
            return None

    def _require_available(self, consumer_id: str, number: int) -> None:
        if number < FIRST_SNAPSHOT_ID:
            raise InvalidRequestError(
                f"next_snapshot must be at least {FIRST_SNAPSHOT_ID}, the lowest number of a "
                f"snapshot, got {number}"
            )
        ids = available_ids(self._handle)
        earliest, following = min(ids, default=FIRST_SNAPSHOT_ID), max(ids, default=0) + 1
        if number < earliest:
            raise InvalidRequestError(
                f"consumer {consumer_id!r} of {self._handle.uri} fell behind: snapshot {number} "
                f"has expired, the earliest left is {earliest}. Changes are lost: read all rows "
                f"once, and set the consumer to snapshot {earliest} or later"
            )
        if number > following:
            raise InvalidRequestError(
                f"consumer {consumer_id!r} cannot read snapshot {number} of {self._handle.uri} "
                f"next: the next commit makes snapshot {following}; set it to that or an "
                "earlier one"
            )

    def _require_kept(self, consumer_id: str, number: int) -> None:
        """Raise if an expiry began to delete the snapshot before the consumer was written."""
        handle = self._handle
        ids = available_ids(handle)
        if number > max(ids, default=0):
            return
        if number in changelog_ids(handle.storage, handle.layout):
            return
        refuse_if_expiring(handle, number, f"consumer {consumer_id!r}")


def expire_consumers(
    handle: TableHandle, *, older_than: int, dry_run: bool = False
) -> ConsumerReport:
    """Delete the consumers whose file was last written before a time in epoch milliseconds."""
    return files_of(handle).expire(handle.uri, older_than, dry_run=dry_run)


def files_of(handle: TableHandle) -> ConsumerFiles:
    """Return the files of all consumers."""
    return consumer_files(handle.storage, handle.layout)
