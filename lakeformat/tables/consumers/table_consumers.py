# SPDX-License-Identifier: Apache-2.0
"""Moves and deletes the consumers of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError, InvalidRequestError, LakeError
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.report import ConsumerReport
from lakeformat.tables.past_time import PastTime, past_millis
from lakeformat.tables.position import Position

__all__ = ["AnyTableConsumers"]

PlaceT = TypeVar("PlaceT")
"""The progress of a consumer, as the format stores it."""


class AnyTableConsumers(ABC, Generic[PlaceT]):
    """The consumers of one branch of a table: readers of changes and their progress."""

    _next_snapshot: str
    """The meaning of ``next_snapshot``: ``the number of the snapshot``."""

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
        """Set the progress of a consumer.

        Pass ``after``, the position up to which it has read, or ``next_snapshot``, the number of
        the snapshot that it reads next: in Paimon its id, in Iceberg its sequence number. In Paimon
        that snapshot and all later ones are kept from now on.

        Refused if that snapshot has expired, or if the history of the branch does not lead to it.
        A dry run only checks this.
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

    def reset(
        self, consumer_id: str, *, next_snapshot: int | None = None, dry_run: bool = False
    ) -> None:
        """Move an existing consumer, or delete it if ``next_snapshot`` is None."""
        if self._read(consumer_id) is None:
            raise self._files().unknown(consumer_id, self._table)
        if next_snapshot is not None:
            self.set(consumer_id, next_snapshot=next_snapshot, dry_run=dry_run)
        elif not dry_run:
            self._files().delete(consumer_id)

    def clear(
        self, *, including: str = ".*", excluding: str | None = None, dry_run: bool = False
    ) -> ConsumerReport:
        """Delete consumers whose whole id matches ``including`` and not ``excluding``."""
        return self._files().clear(self._table, including, excluding, dry_run=dry_run)

    def expire(self, *, older_than: PastTime, dry_run: bool = False) -> ConsumerReport:
        """Delete the consumers that have made no progress since a time in the past."""
        before = past_millis("older_than", older_than, self._environment.now_millis())
        return self._files().expire(self._table, before, dry_run=dry_run)

    def _readable(self, consumer_id: str) -> PlaceT | None:
        """Return the stored progress; None also for a damaged file, which is replaced."""
        try:
            return self._read(consumer_id)
        except CorruptTableError:
            return None

    @abstractmethod
    def _files(self) -> ConsumerFiles:
        """Return the files of all consumers."""

    @abstractmethod
    def _read(self, consumer_id: str) -> PlaceT | None:
        """Return the stored progress of a consumer; None without such a consumer."""

    @abstractmethod
    def _write(self, consumer_id: str, place: PlaceT) -> None:
        """Store the progress of a consumer."""

    @abstractmethod
    def _available(
        self, consumer_id: str, next_snapshot: int | None, after: Position | None
    ) -> PlaceT:
        """Return a place from which changes can be read; raise if there is none."""

    @abstractmethod
    def _require_kept(self, consumer_id: str, place: PlaceT) -> None:
        """Raise if snapshots of the place expired before the consumer was written."""
