# SPDX-License-Identifier: Apache-2.0
"""The consumers of a branch: ``_lake/consumer/consumer-<id>`` stores the position of each.

An expiry by another program ignores these files. So it may remove snapshots that a consumer has not
read yet.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.branch_history import BranchHistory, history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.snapshot import BRANCH
from lakeformat.iceberg.own_files import own_directory
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.report import ConsumerState
from lakeformat.tables.consumers.table_consumers import AnyTableConsumers
from lakeformat.tables.past_time import PastTime
from lakeformat.tables.position import Position
from lakeformat.tables.table import offer_arguments

__all__ = ["ConsumersOfBranches", "TableConsumers"]

_REMEDY = "delete the file, or set the consumer to the position up to which it has read"


@offer_arguments
class TableConsumers(AnyTableConsumers[Position]):
    """The consumers of one branch, each with the position up to which it has read."""

    _next_snapshot = "the sequence number of the snapshot"

    def __init__(self, handle: TableHandle) -> None:
        super().__init__(handle.uri, handle.environment)
        self._handle = handle

    def list(self) -> list[ConsumerState]:
        """Return all consumers with their progress, by id."""
        history, found = self._history(), []
        for consumer_id, modified in self._files().modified():
            position = self.position(consumer_id)
            if position is None:
                continue
            since = history.since(position, None)
            found.append(
                ConsumerState(
                    consumer_id,
                    position.number + 1,
                    modified,
                    len(since.snapshots),
                    since.missed,
                    position,
                )
            )
        return found

    def describe_next(self, consumer_id: str, next_snapshot: int, *, dry_run: bool) -> str:
        """Return the effect of ``set`` or ``reset`` to ``next_snapshot`` as text for a person.

        It promises no kept snapshots, because an expiry by another program keeps none.
        """
        verb = "would read" if dry_run else "reads"
        return (
            f"consumer {consumer_id!r} {verb} the snapshot of sequence number {next_snapshot} next"
        )

    def position(self, consumer_id: str) -> Position | None:
        """Return the position up to which a consumer has read; None if the consumer does not
        exist.
        """
        return self._files().read(consumer_id, self._parsed, _REMEDY, self._handle.environment)

    def move(self, consumer_id: str, position: Position) -> None:
        """Store the position up to which a consumer has read, without checking it."""
        content = json.dumps({"position": str(position)})
        self._files().write(consumer_id, content.encode())

    def snapshots_from(self, position: Position) -> set[int]:
        """Return the ids of the snapshot at a position and of all later ones."""
        return {
            each.snapshot_id
            for each in self._history().snapshots
            if each.snapshot.sequence_number >= position.number
        }

    def _read(self, consumer_id: str) -> Position | None:
        return self.position(consumer_id)

    def _write(self, consumer_id: str, place: Position) -> None:
        self.move(consumer_id, place)

    def _available(
        self, consumer_id: str, next_snapshot: int | None, after: Position | None
    ) -> Position:
        if after is None:
            if type(next_snapshot) is not int or next_snapshot < 1:
                raise InvalidRequestError(
                    "next_snapshot must be the sequence number of a snapshot, from 1 on, got "
                    f"{next_snapshot!r}"
                )
            after = Position((next_snapshot - 1,), self._handle.branch)
        return _existing(self._history(), consumer_id, Position.parse(after))

    def _require_kept(self, consumer_id: str, place: Position) -> None:
        _existing(self._history(), consumer_id, place)

    def _history(self) -> BranchHistory:
        metadata = self._handle.load().metadata
        return history_of(metadata, self._handle.branch, self._handle.uri)

    def _files(self) -> ConsumerFiles:
        return ConsumerFiles(*own_directory(self._handle, "consumer"))

    def _parsed(self, members: Mapping[str, Any]) -> Position:
        return replace(Position.parse(members["position"]), table=self._handle.uri)


@dataclass(frozen=True, slots=True)
class ConsumersOfBranches:
    """The consumers of all branches of a table."""

    handle: TableHandle

    def list(self) -> Sequence[ConsumerState]:
        """Return all consumers with their progress."""
        return [each for branch in self._branches() for each in branch.list()]

    def expire(self, older_than: PastTime, *, dry_run: bool) -> Sequence[ConsumerState]:
        """Delete the consumers without progress since a time, and return them."""
        expired = []
        for branch in self._branches():
            listed = branch.list()
            removed = branch.expire(older_than=older_than, dry_run=dry_run).removed
            expired += [each for each in listed if each.id in removed]
        return expired

    def unread(self, without: Collection[ConsumerState] = ()) -> set[int]:
        """Return the ids of the snapshots that consumers have not read yet.

        The snapshot at the position of a consumer is included, because the next changes are the
        difference to it.
        """
        unread: set[int] = set()
        for branch in self._branches():
            for consumer in branch.list():
                # A consumer whose next snapshot has expired must read all rows again, so nothing is
                # kept for it.
                if not consumer.is_stale and consumer not in without:
                    unread |= branch.snapshots_from(consumer.position)
        return unread

    def _branches(self) -> Iterator[TableConsumers]:
        for reference in self.handle.load().metadata.references.values():
            if reference.type == BRANCH:
                yield TableConsumers(replace(self.handle, branch=reference.name))


def _existing(history: BranchHistory, consumer_id: str, position: Position) -> Position:
    """Return the position with its snapshot; raise ``InvalidRequestError`` if changes cannot be
    read from there.
    """
    table = history.beginning.table
    number = history.number(position)
    since = history.since(position, None)
    if since.missed:
        raise InvalidRequestError(
            f"consumer {consumer_id!r} of {table} fell behind: snapshots after position {position} "
            "have expired. Their changes are lost. Read all rows with scan() once, then call "
            f"table.consumers.set({consumer_id!r}, after=table.position('{history.head}'))"
        )
    if since.rewound:
        raise InvalidRequestError(
            f"consumer {consumer_id!r} cannot read {table} after position {position}, which its "
            f"branch {history.branch!r} does not have: the newest position is {history.head}, and "
            "a rollback may have removed later ones. Read all rows with scan() once, then call "
            f"table.consumers.set({consumer_id!r}, after=table.position('{history.head}'))"
        )
    for each in history.snapshots:
        if each.snapshot.sequence_number == number:
            return each.position
    return replace(position, branch=history.branch, table=table)
