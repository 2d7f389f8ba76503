# SPDX-License-Identifier: Apache-2.0
"""Sets, moves and deletes the consumers of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Generic, TypeVar

from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError, InvalidRequestError, LakeError
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.report import ConsumerReport
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.position import OF_NO_SNAPSHOT, Position

__all__ = ["AnyTableConsumers"]

PlaceT = TypeVar("PlaceT")
"""The progress of a consumer in the form that the table format stores."""


class AnyTableConsumers(ABC, Generic[PlaceT]):
    """The consumers of one branch of a table."""

    _next_snapshot: str
    """The words for ``next_snapshot`` in error messages; in Paimon "the number of the snapshot"."""

    def __init__(self, table: str, environment: Environment) -> None:
        self._table = table
        self._environment = environment

    def set(
        self,
        consumer_id: str,
        *,
        next_snapshot: int | None = None,
        after: Position | None = None,
        dry_run: bool = False,
    ) -> None:
        """Set the progress of a consumer; create the consumer if it does not exist.

        Pass either ``after`` or ``next_snapshot``. ``after`` is the position up to which the
        consumer has read. ``next_snapshot`` is the number of the snapshot that the consumer reads
        next: in Paimon the snapshot id, in Iceberg the sequence number.

        An expiry by this library keeps the next snapshot and all later ones. An expiry by another
        program keeps them only in Paimon tables.

        ``InvalidRequestError`` is raised if the snapshot to read next has expired, if it is not in
        the history of the branch, or if a rollback has removed the snapshot of ``after``. If the
        next snapshot expires during the call, the error is ``CommitConflictError`` for a Paimon
        table, and ``InvalidRequestError`` for a table of another format. A dry run only makes these
        checks.
        """
        if (next_snapshot is None) is (after is None):
            raise InvalidRequestError(
                f"pass either next_snapshot=, {self._next_snapshot} that the consumer reads next, "
                "or after=, the position up to which it has read"
            )
        place = self._available(consumer_id, next_snapshot, after)
        before = self._readable(consumer_id)
        if dry_run:
            self._require_kept(consumer_id, place)
            return
        self._write(consumer_id, place)
        try:
            self._require_kept(consumer_id, place)
        except LakeError:
            if before is None:
                self._files().delete(consumer_id)
            else:
                self._write(consumer_id, before)
            raise

    def set_rewound(self, consumer_id: str, *, upto: Position) -> Position:
        """Store ``upto`` as if a rollback had removed that position; return the stored position.

        For the stored position, ``Table.since`` returns a result whose flag ``rewound`` is True.
        The reader must then read all rows of the snapshot at ``upto``. Until ``set`` moves the
        consumer, the expiry keeps the snapshot at ``upto`` and all later ones.
        """
        read = replace(upto, identity=OF_NO_SNAPSHOT)
        self._write(consumer_id, self._rewound(consumer_id, read))
        return read

    def reset(
        self, consumer_id: str, *, next_snapshot: int | None = None, dry_run: bool = False
    ) -> None:
        """Move an existing consumer to ``next_snapshot``; without a snapshot, delete the consumer.

        A consumer that does not exist raises ``NotFoundError``. A dry run changes nothing.
        """
        if self._read(consumer_id) is None:
            raise self._files().unknown(consumer_id, self._table)
        if next_snapshot is not None:
            self.set(consumer_id, next_snapshot=next_snapshot, dry_run=dry_run)
        elif not dry_run:
            self._files().delete(consumer_id)

    def describe_next(self, consumer_id: str, next_snapshot: int, *, dry_run: bool) -> str:
        """Return the effect of ``set`` or ``reset`` to ``next_snapshot`` as text for a person."""
        verb = "would keep" if dry_run else "kept"
        return f"{verb} snapshots from {next_snapshot} on for consumer {consumer_id!r}"

    def clear(
        self, *, including: str = ".*", excluding: str | None = None, dry_run: bool = False
    ) -> ConsumerReport:
        """Delete the consumers whose whole id matches ``including`` but not ``excluding``.

        Both are regular expressions; an invalid one raises ``InvalidRequestError``. A dry run
        deletes nothing.
        """
        return self._files().clear(self._table, including, excluding, dry_run=dry_run)

    def expire(self, *, older_than: PastTime, dry_run: bool = False) -> ConsumerReport:
        """Delete the consumers that have made no progress since a time in the past.

        A dry run deletes nothing.
        """
        before = past_millis("older_than", older_than, self._environment.now_millis())
        return self._files().expire(self._table, before, dry_run=dry_run)

    def _readable(self, consumer_id: str) -> PlaceT | None:
        try:
            return self._read(consumer_id)
        except CorruptTableError:
            return None

    @abstractmethod
    def _files(self) -> ConsumerFiles:
        """Return the files in which progress is stored."""

    @abstractmethod
    def _read(self, consumer_id: str) -> PlaceT | None:
        """Return the stored progress of a consumer; None if the consumer does not exist."""

    @abstractmethod
    def _write(self, consumer_id: str, place: PlaceT) -> None:
        """Store the progress of a consumer."""

    @abstractmethod
    def _rewound(self, consumer_id: str, read: Position) -> PlaceT:
        """Return the progress that ``set_rewound`` stores for the position ``read``."""

    @abstractmethod
    def _available(
        self, consumer_id: str, next_snapshot: int | None, after: Position | None
    ) -> PlaceT:
        """Return the progress to store for these arguments.

        Raise ``InvalidRequestError`` if the snapshot that the consumer reads next has expired, or
        is not in the history of the branch.
        """

    @abstractmethod
    def _require_kept(self, consumer_id: str, place: PlaceT) -> None:
        """Raise a ``LakeError`` if the snapshots that the consumer needs have expired.

        This happens if snapshots expire while the consumer is being set. Paimon tables raise
        ``CommitConflictError``; tables of other formats raise ``InvalidRequestError``.
        """
