# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshots of a store that an expiry must keep, although they are old.

Readers need the base snapshot with the newest record of merged changes. An open batch needs the
snapshots that both stores had when it began. Readers and batches follow the parents of newer
snapshots to find these snapshots, so the snapshots in between are kept, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.mixed.batch.open_batches import (
    OpenBatch,
    begun_transactions,
    oldest_open_batch,
    overwritten_by,
)
from lakeformat.mixed.expire.settings import ExpirySettings
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.optimized_sequences import MARK, SEQUENCES, TIMES, is_optimizing

__all__ = ["NeededSnapshots"]

_CLOCKS_MILLIS = 600_000
"""The longest time, in milliseconds, by which the clocks of two writers may differ."""
_FLINK_CHECKPOINT = "flink.max-committed-checkpoint-id"


@dataclass(frozen=True, slots=True)
class NeededSnapshots:
    """The snapshots of both stores that an expiry must keep.

    Each attempt to commit finds them anew: it first loads the metadata that it changes, and then
    looks for open batches. A batch that begins later needs no old snapshot. It reads the newest
    snapshots of this metadata or newer ones, and these do not expire.
    """

    settings: ExpirySettings
    now_millis: int
    load: Callable[[], MixedState]
    """A function that returns the newest state of the table."""

    def of_change(self, metadata: TableMetadata, expired: Collection[int]) -> set[int]:
        """Return the ids in ``expired`` whose snapshots of the change store must be kept."""
        if not expired:
            return set()
        history = [*metadata.ancestry(metadata.current_snapshot_id)]
        batch = oldest_open_batch(self.load(), self.now_millis)
        begins = [] if batch is None else _of_batch(history, batch.transaction)
        return _with_newer(history, [*begins, *self._of_flink(history)]).intersection(expired)

    def of_base(self, metadata: TableMetadata, expired: Collection[int]) -> set[int]:
        """Return the ids in ``expired`` whose snapshots of the base store must be kept."""
        if not expired:
            return set()
        state, history = self.load(), [*metadata.ancestry(metadata.current_snapshot_id)]
        batch = oldest_open_batch(state, self.now_millis)
        found = [*self._of_flink(history), *_at_the_beginning(history, batch)]
        # Without the end of a batch its beginning would count as that of an open one.
        begun = begun_transactions(state, self.now_millis)
        found += [each for each in history if not overwritten_by(each).isdisjoint(begun)]
        if self.settings.keeps_written:
            written = (e for e in history if not is_optimizing(e.summary))
            found += [each for each in [next(written, None)] if each is not None]
        needed = _with_newer(history, found)
        kept = [e for e in metadata.snapshots if e.snapshot_id not in {*expired} - needed]
        return (needed | _with_records(metadata, kept)).intersection(expired)

    def _of_flink(self, history: Iterable[Snapshot]) -> Iterator[Snapshot]:
        """Yield the newest snapshot of a Flink checkpoint, if it is not older than ``flink_age``.

        A Flink job that restarts looks for this snapshot.
        """
        newest = next((each for each in history if _FLINK_CHECKPOINT in each.summary), None)
        if newest and self.now_millis - newest.timestamp_ms <= self.settings.flink_age:
            yield newest


def _at_the_beginning(history: Sequence[Snapshot], batch: OpenBatch | None) -> Iterator[Snapshot]:
    """Yield the newest base snapshot that is certainly older than the beginning of an open batch.

    The batch reads the base snapshot that was the newest when it began. The exact snapshot is
    unknown: only times show the order of commits to both stores, and clocks may differ by
    ``_CLOCKS_MILLIS``. If no snapshot is certainly older, yield the oldest one, because the base
    store may have been empty when the batch began. The batch then needs the first snapshot for the
    check that no other batch has overwritten the store since.
    """
    if batch is not None and history:
        latest = batch.began_millis - _CLOCKS_MILLIS
        before = (each for each in history if each.timestamp_ms <= latest)
        yield next(before, history[-1])


def _of_batch(history: Iterable[Snapshot], transaction: int) -> list[Snapshot]:
    return [each for each in history if each.sequence_number == transaction]


def _with_newer(history: Iterable[Snapshot], needed: Collection[Snapshot]) -> set[int]:
    """Return the ids of needed snapshots, and of all newer ones; ``history`` is newest first."""
    found: set[int] = set()
    if not needed:
        return found
    waiting = {each.snapshot_id for each in needed}
    for each in history:
        found.add(each.snapshot_id)
        waiting.discard(each.snapshot_id)
        if not waiting:
            return found
    return found


def _with_records(metadata: TableMetadata, kept: Iterable[Snapshot]) -> set[int]:
    """Return the ids of kept snapshots, and of their ancestors back to the newest record of merged
    changes.
    """
    found: set[int] = set()
    for snapshot in kept:
        missing = {SEQUENCES, TIMES}
        for each in metadata.ancestry(snapshot.snapshot_id):
            found.add(each.snapshot_id)
            missing -= {kind for kind in missing if each.summary.get(f"{kind}{MARK}") == "true"}
            if not missing:
                break
    return found
