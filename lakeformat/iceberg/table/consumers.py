# SPDX-License-Identifier: Apache-2.0
"""The consumers of a branch: a file ``consumer-<id>`` stores the position of a consumer.

An expiry by another program ignores these files. So it may remove snapshots that a consumer has not
read yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.branch_history import BranchHistory, history_of
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import BRANCH
from lakeformat.iceberg.table.own_consumers import own_consumers
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.consumers.position_consumers import (
    ConsumersOfTable,
    PositionConsumers,
    read_all_rows,
)
from lakeformat.tables.position import Position
from lakeformat.tables.table import offer_arguments

__all__ = ["TableConsumers", "consumers_of_branches"]


@offer_arguments
class TableConsumers(PositionConsumers):
    """The consumers of one branch, each with the position up to which it has read."""

    _next_snapshot = "the sequence number of the snapshot"

    def __init__(self, handle: TableHandle, loaded: LoadedMetadata | None = None) -> None:
        """``loaded`` is the metadata to use. By default each call reads the current metadata."""
        super().__init__(handle.uri, handle.environment)
        self._handle = handle
        self._loaded = loaded

    def describe_next(self, consumer_id: str, next_snapshot: int, *, dry_run: bool) -> str:
        """Return the effect of ``set`` or ``reset`` to ``next_snapshot`` as text for a person.

        The text does not promise that snapshots are kept, because an expiry by another program
        ignores consumers.
        """
        verb = "would read" if dry_run else "reads"
        return (
            f"consumer {consumer_id!r} {verb} the snapshot of sequence number {next_snapshot} next"
        )

    def _available(
        self, consumer_id: str, next_snapshot: int | None, after: Position | None
    ) -> Position:
        if after is None:
            number = self._require_number(next_snapshot)
            after = Position((number - 1,), self._handle.branch)
        return _existing(self._history(), consumer_id, Position.parse(after))

    def _require_kept(self, consumer_id: str, place: Position) -> None:
        _existing(self._history(), consumer_id, place)

    def _parsed(self, members: Mapping[str, Any]) -> Position:
        # The branch may have been renamed since the position was stored.
        return replace(super()._parsed(members), branch=self._handle.branch)

    def _history(self) -> BranchHistory:
        loaded = self._loaded or self._handle.load()
        return history_of(loaded.metadata, self._handle.branch, self._handle.uri)

    def _ids_from(self, history: BranchHistory, position: Position) -> set[int]:
        return {
            each.snapshot_id
            for each in history.snapshots
            if each.snapshot.sequence_number >= position.number
        }

    def _files(self) -> ConsumerFiles:
        return own_consumers(self._handle, loaded=self._loaded)


def consumers_of_branches(handle: TableHandle) -> ConsumersOfTable:
    """Return the consumers of all branches of a table."""

    def branches() -> Iterator[TableConsumers]:
        loaded = handle.load()
        for reference in loaded.metadata.references.values():
            if reference.type == BRANCH:
                yield TableConsumers(replace(handle, branch=reference.name), loaded)

    return ConsumersOfTable(branches)


def _existing(history: BranchHistory, consumer_id: str, position: Position) -> Position:
    """Return ``position``, completed by the branch, the table, and the id of its snapshot.

    If the branch no longer has the snapshot, no id is added. Raise ``InvalidRequestError`` if the
    changes after the position cannot be read.
    """
    table = history.beginning.table
    number = history.number(position)
    since = history.since(position, None)
    if since.missed:
        raise InvalidRequestError(
            f"consumer {consumer_id!r} cannot read {table} after position {position}: snapshots "
            "after it have expired, so their changes are lost. "
            f"{read_all_rows(consumer_id, history.head)}"
        )
    if since.rewound:
        raise InvalidRequestError(
            f"consumer {consumer_id!r} cannot read {table} after position {position}, which "
            f"branch {history.branch!r} does not have: the newest position is {history.head}, and "
            f"a rollback may have removed later ones. {read_all_rows(consumer_id, history.head)}"
        )
    for each in history.snapshots:
        if each.snapshot.sequence_number == number:
            return each.position
    return replace(position, branch=history.branch, table=table)
