# SPDX-License-Identifier: Apache-2.0
"""``table.consumers``: lists and moves the consumers of a table; positions are snapshot ids."""

from __future__ import annotations

from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.paimon.commit.same_table import require_same_table
from lakeformat.paimon.consumers.progress import available_ids
from lakeformat.paimon.deletion.intent import refuse_if_expiring
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.branch_directory import require_branch_still
from lakeformat.paimon.metadata.changelog_directory import changelog_ids
from lakeformat.paimon.metadata.consumer import (
    Consumer,
    consumer_files,
    read_consumer,
    write_consumer,
)
from lakeformat.paimon.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    read_snapshot_if_present,
)
from lakeformat.paimon.snapshot_positions import number_of_kept, position_at, require_number
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.report import ConsumerReport, ConsumerState
from lakeformat.tables.consumers.table_consumers import AnyTableConsumers
from lakeformat.tables.position import Position
from lakeformat.tables.table import offer_arguments

__all__ = ["TableConsumers", "expire_consumers", "files_of"]


@offer_arguments
class TableConsumers(AnyTableConsumers[Consumer]):
    """The consumers of one table; changes that a consumer has not read do not expire."""

    _next_snapshot = "the number of the snapshot"

    def __init__(self, handle: TableHandle) -> None:
        super().__init__(handle.uri, handle.environment)
        self._handle = handle

    def list(self) -> list[ConsumerState]:
        """Return every consumer with its progress, sorted by id."""
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
            read, is_stale = self._position(consumer), number < earliest
            found.append(ConsumerState(consumer.id, number, modified, behind, is_stale, read))
        return found

    def _files(self) -> ConsumerFiles:
        return files_of(self._handle)

    def _position(self, consumer: Consumer) -> Position:
        read = consumer.position
        if read is None:
            return position_at(self._handle, consumer.next_snapshot - 1)
        return position_at(self._handle, read.number, read.identity)

    def _read(self, consumer_id: str) -> Consumer | None:
        handle = self._handle
        return read_consumer(handle.storage, handle.layout, consumer_id, handle.environment)

    def _write(self, consumer_id: str, place: Consumer) -> None:
        write_consumer(self._handle.storage, self._handle.layout, place)

    def _rewound(self, consumer_id: str, read: Position) -> Consumer:
        return Consumer(consumer_id, read.number, Position((read.number,), identity=read.identity))

    def _available(
        self, consumer_id: str, next_snapshot: int | None, after: Position | None
    ) -> Consumer:
        read = None
        if after is not None:
            what = "after must be the position up to which the consumer has read"
            try:
                number = number_of_kept(self._handle, what, after)
            except NotFoundError as error:
                raise InvalidRequestError(
                    f"consumer {consumer_id!r} cannot be set: {error}"
                ) from error
            next_snapshot, read = number + 1, self._identified(number, after)
        require_number("next_snapshot must be the number of a snapshot", next_snapshot)
        assert next_snapshot is not None
        self._require_available(consumer_id, next_snapshot)
        require_branch_still(self._handle.storage, self._handle.layout)
        return Consumer(consumer_id, next_snapshot, read)

    def _identified(self, number: int, after: Position) -> Position | None:
        """Return the position after snapshot ``number``, with the identity of that snapshot.

        The identity is taken from ``after``, or from the snapshot if ``after`` has none. Return
        None if it is unknown. A reader needs the identity to notice that a rollback has given the
        number to another snapshot.
        """
        identity = Position.parse(after).identity
        if identity is None:
            found = read_snapshot_if_present(self._handle.storage, self._handle.layout, number)
            identity = None if found is None else found.identity
        return None if identity is None else Position((number,), identity=identity)

    def _require_available(self, consumer_id: str, number: int) -> None:
        if number < FIRST_SNAPSHOT_ID:
            raise InvalidRequestError(
                f"next_snapshot must be at least {FIRST_SNAPSHOT_ID}, the lowest number of a "
                f"snapshot, got {number}"
            )
        require_branch_still(self._handle.storage, self._handle.layout)
        require_same_table(self._handle)
        ids = available_ids(self._handle)
        earliest, following = min(ids, default=FIRST_SNAPSHOT_ID), max(ids, default=0) + 1
        if number < earliest:
            raise InvalidRequestError(
                f"consumer {consumer_id!r} of {self._handle.uri} cannot be set to snapshot "
                f"{number}, which has expired: the earliest one left is {earliest}. To miss no "
                "change, read all rows of the newest snapshot, and set the consumer to the "
                "snapshot after it"
            )
        if number > following:
            raise InvalidRequestError(
                f"consumer {consumer_id!r} of {self._handle.uri} cannot be set to snapshot "
                f"{number}: the next commit makes snapshot {following}. Set it to snapshot "
                f"{following} or an earlier one"
            )

    def _require_kept(self, consumer_id: str, place: Consumer) -> None:
        """Raise CommitConflictError if an expiry began to delete the next snapshot before the
        consumer was written.
        """
        handle, number = self._handle, place.next_snapshot
        ids = available_ids(handle)
        if number > max(ids, default=0):
            return
        if number in changelog_ids(handle.storage, handle.layout):
            return
        refuse_if_expiring(handle, number, f"consumer {consumer_id!r}")


def expire_consumers(
    handle: TableHandle, *, older_than: int, dry_run: bool = False
) -> ConsumerReport:
    """Delete the consumers that were last written before ``older_than`` (epoch milliseconds).

    Return the report, which in a dry run lists the consumers that would be deleted.
    """
    return files_of(handle).expire(handle.uri, older_than, dry_run=dry_run)


def files_of(handle: TableHandle) -> ConsumerFiles:
    """Return the consumer files of the branch."""
    return consumer_files(handle.storage, handle.layout)
