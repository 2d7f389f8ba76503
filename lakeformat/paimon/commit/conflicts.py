# SPDX-License-Identifier: Apache-2.0
"""Checks file by file that a commit still fits the snapshot it builds on.

The rules are Paimon's. A violation raises ``CommitConflictError``, which names both commits. A
retry of the same files cannot succeed, because another commit has changed them: plan the work
again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import pyarrow as pa

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.paimon.commit.base_files import BaseFiles, in_partitions
from lakeformat.paimon.commit.conflict_text import Committer, described, place
from lakeformat.paimon.commit.conflicting_snapshot import against_index_files, against_last_change
from lakeformat.paimon.commit.key_ranges import first_overlap
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.commit.vector_conflicts import find_vector_conflict
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns, meet
from lakeformat.paimon.metadata.manifest_columns import columns_of
from lakeformat.paimon.metadata.manifest_columns.columns import Mask, Positions
from lakeformat.paimon.metadata.snapshot import Snapshot

__all__ = ["ConflictCheck", "check_buckets", "check_within", "without_duplicates"]

_REMEDY = (
    "Run the operation again: it then works on the newest snapshot. If this happens often, let "
    "only one job compact: set the table option 'write-only' = 'true'"
)


@dataclass(slots=True)
class ConflictCheck:
    """Checks the changes of one commit against each snapshot that it tries to build on."""

    who: Committer
    may_change_buckets: bool = False
    """True only for overwrites of whole partitions, which may give a partition a new bucket count.
    """
    _base: BaseFiles | None = None
    _partitions: pa.Array | None = None

    def check(self, head: Snapshot | None, changes: SnapshotDelta) -> None:
        """Raise CommitConflictError unless the changes can be applied to the live files of
        ``head``.

        ``head=None`` stands for an empty table.
        """
        live = self._live_files(head, changes)
        everything = ManifestColumns.concat([live, changes.table])
        counted = changes.added if self.may_change_buckets else everything
        check_buckets(self.who, head, counted)
        outcome = meet(everything)
        if len(outcome.added_again):
            again = everything.take(outcome.added_again)
            self._refuse(head, again, "files that this commit adds are in the table already")
        left = everything.take(outcome.left)
        gone = left.filter(left.is_delete)
        if len(gone):
            self._refuse(head, gone, "files that this commit deletes are not in the table any more")
        self._check_levels(head, left, outcome.left >= len(live))
        conflict = find_vector_conflict(self.who.handle, head, changes, left)
        if conflict is not None:
            search = against_index_files if conflict.is_about_index else against_last_change
            sides = search(self.who, head, conflict.files)
            raise CommitConflictError(
                f"{sides}: this commit {conflict.why}. Nothing was published. {_REMEDY}"
            )

    def _live_files(self, head: Snapshot | None, changes: SnapshotDelta) -> ManifestColumns:
        if head is None:
            return columns_of([])
        partitions = changes.partitions()
        if self._base is None or not partitions.equals(self._partitions):
            self._base, self._partitions = in_partitions(self.who.handle, partitions), partitions
        return self._base.at(head)

    def _check_levels(self, head: Snapshot | None, left: ManifestColumns, is_new: Mask) -> None:
        """Raise CommitConflictError if the key ranges of two files of one level above 0 overlap.

        Only the levels that get a new file are compared. ``left`` are the entries after the
        commit; ``is_new`` is True for the new ones.
        """
        merged = left.level.numbers >= 1
        schema = self.who.handle.schema
        if not schema.primary_keys or not (is_new & merged).any():
            return
        places = _places(left)
        rows = np.flatnonzero(merged & np.isin(places, places[is_new & merged]))
        pair = first_overlap(left.take(rows), places[rows], schema)
        if pair is not None:
            why = "the key ranges of two files of one level would overlap"
            self._refuse(head, left.take(rows[list(pair)]), why)

    def _refuse(self, head: Snapshot | None, files: ManifestColumns, why: str) -> NoReturn:
        sides = against_last_change(self.who, head, files.file_name.texts())
        raise CommitConflictError(
            f"{sides}: {why}: {described(self.who.handle, files)}. Nothing was published. {_REMEDY}"
        )


def without_duplicates(
    handle: TableHandle, head: Snapshot, changes: SnapshotDelta
) -> SnapshotDelta:
    """Return the changes without added files that are already live in ``head``."""
    live = in_partitions(handle, changes.partitions()).at(head)
    again = meet(ManifestColumns.concat([live, changes.table])).added_again - len(live)
    if not len(again):
        return changes
    new = np.ones(len(changes.table), np.bool_)
    new[again] = False
    return replace(changes, table=changes.table.filter(new))


def check_within(handle: TableHandle, changes: SnapshotDelta) -> None:
    """Raise InvalidRequestError for a commit that contains a file twice."""
    outcome = meet(changes.table)
    if len(outcome.added_again):
        again = described(handle, changes.table.take(outcome.added_again))
        raise InvalidRequestError(
            f"this commit contains {again} twice, which would double rows: pass each message once"
        )


def check_buckets(who: Committer, head: Snapshot | None, columns: ManifestColumns) -> None:
    """Raise CommitConflictError if a partition has files of two bucket counts.

    ``columns`` are the entries to compare, such as those of live files and of new files.
    ``head=None`` stands for an empty table.
    """
    known = columns.filter(columns.total_buckets.numbers > 0)
    if not len(known):
        return
    codes = known.partition.to_arrow().dictionary_encode().indices.to_numpy()
    totals = known.total_buckets.numbers
    order = np.lexsort((totals, codes))
    differs = (np.diff(codes[order]) == 0) & (np.diff(totals[order]) != 0)
    if not differs.any():
        return
    at = int(np.flatnonzero(differs)[0])
    pair = known.take(order[at : at + 2])
    [one, other] = pair.entries(np.arange(2))
    sides = against_last_change(who, head, pair.file_name.texts())
    raise CommitConflictError(
        f"{sides}: {place(who.handle, one.partition)} has "
        f"{one.total_buckets} and {other.total_buckets} buckets ({one.file.file_name} and "
        f"{other.file.file_name}). So the bucket count changed while this commit was prepared. "
        "Nothing was published. Discard prepared messages with Table.abort, open the table again, "
        "and write the rows again or overwrite the partition"
    )


def _places(columns: ManifestColumns) -> Positions:
    """Return a number for each entry; entries of one partition, bucket and level have the same
    number.
    """
    partition = columns.partition.to_arrow().dictionary_encode().indices.to_numpy()
    parts = (partition.astype(np.int64), columns.bucket.numbers, columns.level.numbers)
    _, places = np.unique(np.stack(parts), axis=1, return_inverse=True)
    return places.reshape(-1).astype(np.int64)
