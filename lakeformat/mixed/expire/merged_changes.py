# SPDX-License-Identifier: Apache-2.0
"""Finds and removes old changes of the change store that the base store has merged.

Only entries of the newest snapshot are removed. The files are deleted when the snapshots that still
have them expire.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from lakeformat.errors import NotFoundError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.read.plan import plan_files
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.file_choice import FilesNamed
from lakeformat.iceberg.write.publish import publish_change
from lakeformat.mixed.batch.open_batches import OpenBatch
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.read.store_files import StoreFile, change_files
from lakeformat.mixed.stores.optimized_sequences import (
    MARK,
    NOTHING_MERGED,
    SEQUENCES,
    OptimizedSequences,
    optimized_sequences,
)
from lakeformat.mixed.stores.store_pair import LoadedPair

__all__ = ["MergedChanges", "find_merged_changes", "remove_merged_changes"]

_SETTLED_MILLIS = 60 * 60 * 1000
"""The least age, in milliseconds, of a merge whose changes may be removed from the change store. A
reader loads the base store first, then the change store: changes that are merged and removed in
between would be missing. Clocks may differ, too.
"""


@dataclass(frozen=True, slots=True)
class MergedChanges:
    """The files of the change store that are removed from its newest snapshot."""

    paths: tuple[str, ...] = ()
    rows: int = 0
    bytes: int = 0


def find_merged_changes(
    pair: LoadedPair,
    state: MixedState,
    open_batch: OpenBatch | None,
    age_millis: int,
    now_millis: int,
) -> MergedChanges:
    """Return the files that were committed more than ``age_millis`` ago and merged at least an hour
    ago.

    Changes since the start of an open batch are kept, because they must be merged again if the
    batch overwrites their partitions. Files are kept, too, if two partitions have the same path,
    for example those of a null and the text ``null``.
    """
    merged = [state.merged, _settled(pair, state, now_millis - _SETTLED_MILLIS)]
    files = [*change_files(state.change, plan_files(state.change))]
    unclear = _unclear_partitions(files)
    upto = None if open_batch is None else open_batch.transaction
    ages = _Ages.of(state)
    chosen = [
        each
        for each in files
        if each.partition not in unclear
        and 0 < each.sequence <= min(record.sequence(each.partition) for record in merged)
        and (upto is None or each.sequence <= upto)
        and now_millis - ages.committed(each.sequence) > age_millis
    ]
    return MergedChanges(
        tuple(each.path for each in chosen),
        sum(each.split.file.record_count or 0 for each in chosen),
        sum(each.split.file.size_bytes for each in chosen),
    )


def remove_merged_changes(handle: TableHandle, merged: MergedChanges) -> None:
    """Publish a snapshot of the change store without the files in ``merged``."""
    if merged.paths:
        choice = FilesNamed(pa.array(merged.paths, pa.string()))
        publish_change(handle, ChangedFiles(choice=choice), commit=None)


@dataclass(frozen=True, slots=True)
class _Ages:
    """The sequence numbers of the commits of the change store, ascending, with their times."""

    numbers: Sequence[int]
    times: Sequence[int]

    @classmethod
    def of(cls, state: MixedState) -> _Ages:
        head = None if state.change.snapshot is None else state.change.snapshot.snapshot_id
        history = [*state.change.metadata.ancestry(head)][::-1]
        return cls(
            [each.sequence_number for each in history], [each.timestamp_ms for each in history]
        )

    def committed(self, sequence: int) -> int:
        """Return the time, in epoch milliseconds, of the commit with a sequence number.

        If the snapshot of the commit has expired, return the time of the next commit.
        """
        return self.times[min(bisect_left(self.numbers, sequence), len(self.times) - 1)]


def _settled(pair: LoadedPair, state: MixedState, upto_millis: int) -> OptimizedSequences:
    """Return the record of merged changes that the base store had at ``upto_millis``.

    If the table was detached and adopted again after this time, return an empty record, because a
    detach deletes the records.
    """
    head = None if state.base.snapshot is None else state.base.snapshot.snapshot_id
    for each in pair.base.metadata.ancestry(head):
        if each.timestamp_ms <= upto_millis and each.summary.get(f"{SEQUENCES}{MARK}") == "true":
            with suppress(NotFoundError):
                return optimized_sequences(pair.base, each)
            break
    return NOTHING_MERGED


def _unclear_partitions(files: Sequence[StoreFile]) -> set[str]:
    """Return the paths that two partitions share, such as those of a null and the text ``null``.

    The record of merged changes has one entry for both.
    """
    values: dict[str, set[str]] = {}
    for each in files:
        values.setdefault(each.partition, set()).add(each.values)
    return {path for path, found in values.items() if len(found) > 1}
