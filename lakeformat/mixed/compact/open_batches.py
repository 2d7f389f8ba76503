# SPDX-License-Identifier: Apache-2.0
"""Finds batches that have begun, but not committed yet.

A batch takes its transaction with an empty commit to the change store. Its changes come later with
this transaction, so they are older than all commits since then. If newer changes were merged
before, the rows of the batch would stand beside theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.properties import int_property
from lakeformat.iceberg.read.plan import TableState, plan_files
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import change_files
from lakeformat.tables.moment import moment_text

__all__ = ["OpenBatch", "begun_transactions", "change_data_millis", "oldest_open_batch"]

_BEGIN = "tx.begin.signature"
"""The member of the summary of an empty commit with which Amoro begins a batch."""
_TRANSACTION = "txId"
"""The member of the summary of a base snapshot: the transaction of an overwrite."""
_LIFETIME = "change.data.ttl.minutes"
"""The table property for the age up to which changes are kept, so that no batch can last longer."""
_LIFETIME_MINUTES = 7 * 24 * 60
_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch whose changes may still come."""

    transaction: int
    began_millis: int

    def __str__(self) -> str:
        return f"transaction {self.transaction}, begun at {moment_text(self.began_millis)}"


def oldest_open_batch(state: MixedState, now_millis: int) -> OpenBatch | None:
    """Return the open batch with the lowest transaction; None if there is none.

    A batch that began longer ago than change data is kept counts as dead.
    """
    begun = _begun(state, now_millis)
    if not begun:
        return None
    ended = _committed(state)
    return min(
        (each for each in begun if each.transaction not in ended),
        key=lambda each: each.transaction,
        default=None,
    )


def change_data_millis(properties: Mapping[str, str]) -> int:
    """Return the age up to which changes are kept in any case, in milliseconds: the property
    ``change.data.ttl.minutes`` of the base store.
    """
    return _MINUTE * int_property(properties, _LIFETIME, _LIFETIME_MINUTES)


def begun_transactions(state: MixedState, now_millis: int) -> set[int]:
    """Return the transactions of all batches that have begun and count as alive, also of those that
    have committed.
    """
    return {each.transaction for each in _begun(state, now_millis)}


def _begun(state: MixedState, now_millis: int) -> list[OpenBatch]:
    lifetime = change_data_millis(state.base.metadata.properties)
    return [
        OpenBatch(each.sequence_number, each.timestamp_ms)
        for each in _history(state.change)
        if _BEGIN in each.summary and now_millis - each.timestamp_ms <= lifetime
    ]


def _committed(state: MixedState) -> set[int]:
    """Return the transactions that the files of the change store and overwrites have."""
    found = {each.transaction for each in change_files(state.change, plan_files(state.change))}
    for snapshot in _history(state.base):
        text = snapshot.summary.get(_TRANSACTION, "")
        if text.isdecimal():
            found.add(int(text))
    return found


def _history(store: TableState) -> Iterator[Snapshot]:
    """Return the snapshot of a store and its ancestors that have not expired."""
    head = None if store.snapshot is None else store.snapshot.snapshot_id
    return store.metadata.ancestry(head)
