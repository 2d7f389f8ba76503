# SPDX-License-Identifier: Apache-2.0
"""Finds batches that have begun, but not committed yet.

A batch begins with an empty commit to the change store. The sequence number of this commit is the
transaction of the batch. The batch commits its changes later with this transaction. So these
changes count as older than all commits since the batch began. If newer changes were merged before
the batch commits, the table could have a row of the batch and a newer row with the same key.

A batch of this library also has a lease. If the process of the batch dies, the lease becomes stale.
Then the next batch or compaction ends the dead batch. The end is recorded in the change store,
which refuses every later commit of the dead batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.read.plan import TableState, plan_files
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import change_files
from lakeformat.tables.moment import moment_text

__all__ = [
    "BEGIN",
    "CHANGE_LIFETIME",
    "LEASE",
    "MINUTE_MILLIS",
    "TRANSACTION",
    "OpenBatch",
    "begun_transactions",
    "change_data_millis",
    "end_batch_advice",
    "ended_mark",
    "leased_batches",
    "oldest_open_batch",
    "overwrite_transactions",
    "overwritten_by",
    "published_transactions",
    "transactions_ended",
]

BEGIN = "tx.begin.signature"
"""The summary member that marks the empty commit with which a batch begins, as in Amoro."""
TRANSACTION = "txId"
"""The summary member with the transaction of the batch, in the base snapshot of an overwrite, as in
Amoro.
"""
LEASE = "lake.lease"
"""The summary member with the number of the batch's lease, in the commit with which a batch begins.
"""
_ENDED = "lake.ended-transactions"
"""The summary member with the transactions of ended batches, in the change snapshot that records
their end.
"""
_NEW_FILES = ("added-data-files", "added-delete-files")
"""The members of the summary of a snapshot that count its new files."""
CHANGE_LIFETIME = "change.data.ttl.minutes"
"""The table property for the age up to which changes are kept; a batch of Amoro that runs longer
counts as dead.
"""

_LIFETIME_MINUTES = 7 * 24 * 60
MINUTE_MILLIS = 60_000
_LONGEST_MINUTES = 100 * 366 * 24 * 60
_MOST_DIGITS = 19
"""The number of digits of the largest signed 64-bit number; longer transaction numbers are
ignored.
"""


def end_batch_advice(table: FilePlaces) -> str:
    """Return the advice for messages about an open batch that other work waits for."""
    return f"`lake end-batch {table.argument}` ends a batch of this library that hangs"


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that has begun and may still commit changes."""

    transaction: int
    began_millis: int

    def __str__(self) -> str:
        return f"transaction {self.transaction}, begun at {moment_text(self.began_millis)}"


def oldest_open_batch(state: MixedState, now_millis: int) -> OpenBatch | None:
    """Return the open batch with the lowest transaction; None if there is none.

    A batch of Amoro counts as dead if it is older than ``change.data.ttl.minutes``. A batch of this
    library is open until it commits to a store, or the change store records its end.
    """
    begun = _begun(state, now_millis)
    if not begun:
        return None
    ended = _committed(state) | _ended_in(_history(state.change))
    return min(
        (each for each in begun if each.transaction not in ended),
        key=lambda each: each.transaction,
        default=None,
    )


def change_data_millis(properties: Mapping[str, str]) -> int:
    """Return the age in milliseconds up to which changes are kept in any case.

    It is the property ``change.data.ttl.minutes`` of the base store, at most about 100 years.
    """
    minutes = int_property(properties, CHANGE_LIFETIME, _LIFETIME_MINUTES)
    return MINUTE_MILLIS * min(minutes, _LONGEST_MINUTES)


def begun_transactions(state: MixedState, now_millis: int) -> set[int]:
    """Return the transactions of all batches that have begun, including those that have committed.

    Batches of Amoro that count as dead are left out.
    """
    return {each.transaction for each in _begun(state, now_millis)}


def leased_batches(change: TableMetadata) -> dict[int, int]:
    """Return the lease number of each batch of this library, by transaction.

    Batches that the change store records as ended are left out.
    """
    history = [*_main(change)]
    ended = _ended_in(history)
    return {
        each.sequence_number: number
        for each in history
        for number in _numbers(each.summary.get(LEASE, ""))
        if each.sequence_number not in ended
    }


def overwrite_transactions(base: TableMetadata) -> set[int]:
    """Return the transactions of the batches that have overwritten the base store."""
    return _overwritten_in(_main(base))


def overwritten_by(snapshot: Snapshot) -> set[int]:
    """Return the transactions in the summary of a base snapshot; empty if the summary has none."""
    return _numbers(snapshot.summary.get(TRANSACTION, ""))


def published_transactions(base: TableMetadata, change: TableMetadata) -> set[int]:
    """Return the transactions of the batches that have published their rows.

    A batch publishes its rows with an overwrite, or with a commit to the change store that has new
    files and records the end of the batch.
    """
    with_files = (
        each
        for each in _main(change)
        if any(each.summary.get(member, "0") != "0" for member in _NEW_FILES)
    )
    return overwrite_transactions(base) | _ended_in(with_files)


def transactions_ended(change: LoadedMetadata) -> set[int]:
    """Return the transactions of the batches that the change store records as ended."""
    return _ended_in(_main(change.metadata))


def ended_mark(transactions: Iterable[int]) -> dict[str, str]:
    """Return the members of a summary that record the end of batches; empty without batches."""
    listed = ",".join(map(str, sorted(transactions)))
    return {_ENDED: listed} if listed else {}


def _begun(state: MixedState, now_millis: int) -> list[OpenBatch]:
    lifetime = change_data_millis(state.base.metadata.properties)
    return [
        OpenBatch(each.sequence_number, each.timestamp_ms)
        for each in _history(state.change)
        if BEGIN in each.summary
        and (LEASE in each.summary or now_millis - each.timestamp_ms <= lifetime)
    ]


def _committed(state: MixedState) -> set[int]:
    found = {each.transaction for each in change_files(state.change, plan_files(state.change))}
    return found | _overwritten_in(_history(state.base))


def _overwritten_in(history: Iterable[Snapshot]) -> set[int]:
    return {number for each in history for number in overwritten_by(each)}


def _ended_in(history: Iterable[Snapshot]) -> set[int]:
    return {number for each in history for number in _numbers(each.summary.get(_ENDED, ""))}


def _numbers(text: str) -> set[int]:
    listed = (each for each in text.split(",") if each.isascii() and each.isdecimal())
    return {int(each) for each in listed if len(each) <= _MOST_DIGITS}


def _main(store: TableMetadata) -> Iterator[Snapshot]:
    """Yield the snapshots of the branch main that have not expired, newest first."""
    return store.ancestry(store.current_snapshot_id)


def _history(store: TableState) -> Iterator[Snapshot]:
    head = None if store.snapshot is None else store.snapshot.snapshot_id
    return store.metadata.ancestry(head)
