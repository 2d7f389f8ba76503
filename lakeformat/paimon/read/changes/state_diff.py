# SPDX-License-Identifier: Apache-2.0
"""Compares two snapshots of a primary-key table, key by key.

The rows of a bucket in both snapshots are read side by side in key order. Memory holds a few
batches of each sorted run, and all postponed rows of a partition, which are not sorted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.expiry_race import explaining_expiry
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.merge.order import MergeOrder
from lakeformat.paimon.merge.streams import rounds_of
from lakeformat.paimon.metadata.manifest import ManifestEntry
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET, UNAWARE_BUCKET
from lakeformat.paimon.partition import partition_name
from lakeformat.paimon.read.buckets import visible_buckets
from lakeformat.paimon.read.changes.rows import ChangedRows
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows, find_deleted_rows
from lakeformat.paimon.read.equal_rows import equal_rows
from lakeformat.paimon.read.merged_rows_with_kind import MergedRowsWithKind
from lakeformat.paimon.read.plan import plan_files
from lakeformat.paimon.read.postponed_rows import (
    merged_buckets,
    merges_postponed_rows,
    postponed_partitions,
)
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.groups import KeyGroups, Mask
from lakeformat.rows.prune import on_columns
from lakeformat.rows.row_kinds import DELETE, is_retract
from lakeformat.rows.take_rows import take_rows
from lakeformat.types.types import DataField

__all__ = ["StateDiff"]

_Place: TypeAlias = tuple[bytes, int]
_FileIdentity: TypeAlias = tuple[object, ...]
_Batches: TypeAlias = Iterator[pa.RecordBatch]
_DEDUPLICATE = "deduplicate"


class Side(Enum):
    """The state from which rows are returned: that of the earlier or of the later snapshot."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class StateDiff:
    """The rows that are new or different in the later of two snapshots; can be pickled.

    With ``keep_deletes``, keys that only the earlier snapshot has are returned as ``-D``. A
    snapshot that is None is the table before its first commit.
    """

    handle: TableHandle
    asked: ChangedRows
    keep_deletes: bool
    before: Snapshot | None
    after: Snapshot | None
    files_before: tuple[ManifestEntry, ...]
    files_after: tuple[ManifestEntry, ...]
    only: Side | None = None
    """``Side.BEFORE``: only the rows of deleted keys; ``Side.AFTER``: only the other rows."""

    @classmethod
    def plan(
        cls,
        handle: TableHandle,
        before: Snapshot | None,
        after: Snapshot | None,
        asked: ChangedRows,
        *,
        keep_deletes: bool,
    ) -> StateDiff:
        """Return the comparison of two snapshots.

        Raise UnsupportedError if a partition has different numbers of buckets in the two snapshots.
        """
        with explaining_expiry(handle, before, after):
            mine, theirs = _files_of(handle, before, asked), _files_of(handle, after, asked)
        _require_same_buckets(handle, [*mine, *theirs])
        return cls(handle, asked, keep_deletes, before, after, mine, theirs)

    @property
    def size_bytes(self) -> int:
        """The sum of the sizes of the files in both snapshots, in bytes."""
        return sum(entry.file.file_size for entry in (*self.files_before, *self.files_after))

    def by_bucket(self) -> list[StateDiff]:
        """Return one comparison for each bucket whose files or deletion vectors differ.

        But if keys may have moved to another bucket, first return the comparisons that find the
        deleted keys of all buckets. The comparisons that find the other rows follow.
        """
        with explaining_expiry(self.handle, self.before, self.after):
            old, new = self._states()
            passes = self._passes(old, new)
        return [
            replace(
                self,
                files_before=tuple(old.buckets.get(place, ())),
                files_after=tuple(new.buckets.get(place, ())),
                only=only,
            )
            for only, place in passes
        ]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Stream the changed rows, bucket after bucket.

        If keys may have moved to another bucket, the rows of all deleted keys come first.
        """
        with explaining_expiry(self.handle, self.before, self.after):
            old, new = self._states()
            for only, place in self._passes(old, new):
                deleted = self.keep_deletes and only is not Side.AFTER
                for joined in self._joined(old, new, place):
                    for batch in joined.changed(deleted=deleted, present=only is not Side.BEFORE):
                        shaped = self.asked.of_stored(batch)
                        if shaped.num_rows:
                            yield shaped

    def _passes(self, old: _StateFiles, new: _StateFiles) -> list[tuple[Side | None, _Place]]:
        """Return the bucket of each comparison, in order, with the value for ``StateDiff.only``.

        With dynamic buckets, a key can move to another bucket or partition. The new row of the key
        must not precede the deletion of its old row. So the deleted keys of all buckets come first.
        """
        places = _changed(old, new)
        can_move = self.handle.options.bucket == UNAWARE_BUCKET and len(places) > 1
        if self.only is not None or not (self.keep_deletes and can_move):
            return [(self.only, place) for place in places]
        sides = ((Side.BEFORE, old), (Side.AFTER, new))
        return [
            (side, place) for side, state in sides for place in places if place in state.buckets
        ]

    def _joined(self, old: _StateFiles, new: _StateFiles, place: _Place) -> Iterator[_Joined]:
        schema = self.handle.schema
        # A new file in a bucket may be older than rows that are postponed in both states.
        is_postponed = place[1] == POSTPONE_BUCKET
        by_new_files = not (self.keep_deletes or is_postponed) and _newest_file_decides(schema)
        sides = _of_new_files(schema, old, new, place) if by_new_files else None
        whole = old.rows(place, old.files(place)), new.rows(place, new.files(place))
        return _rounds(schema, *(sides or whole))

    def _states(self) -> tuple[_StateFiles, _StateFiles]:
        # Postponed rows may have any key, so the whole partition is compared at once.
        whole = postponed_partitions([*self.files_before, *self.files_after])
        return (
            _StateFiles(self.handle, self.before, self.files_before, whole),
            _StateFiles(self.handle, self.after, self.files_after, whole),
        )


def _files_of(
    handle: TableHandle, snapshot: Snapshot | None, asked: ChangedRows
) -> tuple[ManifestEntry, ...]:
    if snapshot is None:
        return ()
    conditions = () if asked.where is None else asked.where.conditions()
    merges_postponed = merges_postponed_rows(handle.schema)
    # Values of non-key columns are only known after the merge, keys of postponed rows are unsorted.
    keys = handle.schema.partition_keys if merges_postponed else handle.schema.primary_keys
    found = plan_files(handle, snapshot, conditions=on_columns(conditions, keys))
    group = merged_buckets if merges_postponed else visible_buckets
    return tuple(entry for files in group(handle.schema, found) for entry in files)


def _by_place(
    entries: Iterable[ManifestEntry], whole: Container[bytes]
) -> dict[_Place, list[ManifestEntry]]:
    found: dict[_Place, list[ManifestEntry]] = {}
    for entry in entries:
        bucket = POSTPONE_BUCKET if entry.partition in whole else entry.bucket
        found.setdefault((entry.partition, bucket), []).append(entry)
    return found


class _StateFiles:
    """The files of one snapshot by bucket, and a reader of their merged rows.

    Each partition in ``whole`` counts as one bucket.
    """

    def __init__(
        self,
        handle: TableHandle,
        snapshot: Snapshot | None,
        entries: Iterable[ManifestEntry],
        whole: Container[bytes],
    ) -> None:
        self.buckets = _by_place(entries, whole)
        self._deleted = DeletedRows(handle, ())
        if snapshot is not None:
            self._deleted = find_deleted_rows(handle, snapshot)
            files = DataFiles(handle, snapshot, self._deleted)
            self._reader = MergedRowsWithKind(handle.schema, files, handle.schema.fields)

    def files(self, place: _Place) -> dict[_FileIdentity, DeletionVector | None]:
        """Return the identity of each file of a bucket, with its deletion vector or None.

        A file with equal identity and vector has the same rows in two snapshots.
        """
        return {
            entry.identity: self._deleted.vector(entry) for entry in self.buckets.get(place, ())
        }

    def rows(
        self,
        place: _Place,
        files: Container[_FileIdentity],
        wanted: tuple[DataField, ...] | None = None,
        *,
        keep_retracts: bool = False,
    ) -> _Batches:
        """Stream the merged rows of those files of a bucket that are in ``files``, in key order.

        ``wanted`` are the columns to read; ``wanted=None`` means all columns.
        """
        chosen = [entry for entry in self.buckets.get(place, ()) if entry.identity in files]
        if not chosen:
            return iter(())
        reader = replace(self._reader, wanted=wanted or self._reader.wanted)
        return reader.read(chosen, keep_retracts=keep_retracts)


def _changed(old: _StateFiles, new: _StateFiles) -> list[_Place]:
    places = dict.fromkeys([*new.buckets, *old.buckets])
    return [place for place in places if old.files(place) != new.files(place)]


def _of_new_files(
    schema: TableSchema, old: _StateFiles, new: _StateFiles, place: _Place
) -> tuple[_Batches, _Batches] | None:
    """Return the rows of the two states, read only from files that are not the same in both.

    Return None if these files do not determine the difference: after a rollback, the old value of a
    key may be in a removed file, and its current value in a file that both states share.
    """
    mine, theirs = old.files(place), new.files(place)
    went = {name for name in mine if name not in theirs or mine[name] != theirs[name]}
    came = {name for name in theirs if name not in mine or mine[name] != theirs[name]}
    if went:
        keys = schema.key_fields
        gone, there = old.rows(place, went, keys), new.rows(place, came, keys, keep_retracts=True)
        if any(each.is_gone.any() for each in _rounds(schema, gone, there)):
            return None
    return old.rows(place, went), new.rows(place, came, keep_retracts=True)


def _rounds(schema: TableSchema, before: _Batches, after: _Batches) -> Iterator[_Joined]:
    """Yield the rows of both states in rounds: all rows of a key are in one round, and keys
    ascend.
    """
    order = MergeOrder(tuple(field.name for field in schema.key_fields))
    for parts in rounds_of([before, after], order.keys):
        sides = dict(parts)
        rows = pa.Table.from_batches([*sides.get(0, ()), *sides.get(1, ())]).combine_chunks()
        count_before = sum(batch.num_rows for batch in sides.get(0, ()))
        yield _Joined(schema, rows, count_before, order.group(rows, numbered=False))


@dataclass(frozen=True, slots=True)
class _Joined:
    """The rows of some keys in both states; each state has at most one row per key."""

    schema: TableSchema
    rows: pa.Table
    """The ``count_before`` rows of the earlier state, then the rows of the later state."""
    count_before: int
    groups: KeyGroups

    @property
    def is_gone(self) -> Mask:
        """A mask of the keys that only the earlier snapshot has."""
        gone: Mask = self.groups.newest < self.count_before
        return gone

    def changed(self, *, deleted: bool, present: bool) -> Iterator[pa.RecordBatch]:
        """Yield changed rows.

        With ``deleted``, these include the rows of deleted keys, with the kind DELETE. With
        ``present``, they include the rows of new and changed keys in the later state.
        """
        rows, groups, is_gone = self.rows, self.groups, self.is_gone
        chosen = is_gone & deleted
        if present:
            chosen |= self._is_changed()
        found = take_rows(rows, groups.newest[chosen])
        kinds = np.where(is_gone[chosen], DELETE, found[VALUE_KIND.name].to_numpy()).astype(np.int8)
        at = found.schema.get_field_index(VALUE_KIND.name)
        yield from found.set_column(at, found.schema.field(at), pa.array(kinds)).to_batches()

    def _is_changed(self) -> Mask:
        """Return a mask of the keys that are new or changed in the later state."""
        rows, groups = self.rows, self.groups
        firsts, is_changed = groups.oldest, ~self.is_gone
        both = np.flatnonzero(groups.sizes == 2)
        columns = self.schema.column_names
        is_changed[both] = ~equal_rows(
            take_rows(rows.select(columns), firsts[both]),
            take_rows(rows.select(columns), groups.newest[both]),
        )
        is_changed &= ~is_retract(rows[VALUE_KIND.name].to_numpy()[groups.newest])
        return is_changed


def _newest_file_decides(schema: TableSchema) -> bool:
    """Return True if a row in a new file alone determines the new value of its key.

    Then files shared by both states need not be read. A row that was rewritten unchanged counts as
    changed, as in Paimon's Java reader.
    """
    options = schema.table_options
    return options.merge_engine == _DEDUPLICATE and not options.sequence_field


def _require_same_buckets(handle: TableHandle, entries: Sequence[ManifestEntry]) -> None:
    """Raise UnsupportedError if a partition has different bucket counts in the two states.

    A partition with postponed rows is compared as a whole, with any bucket counts.
    """
    found: dict[bytes, set[int]] = {}
    whole = postponed_partitions(entries)
    for entry in entries:
        if entry.partition not in whole:
            found.setdefault(entry.partition, set()).add(entry.total_buckets)
    changed = next((each for each in found.items() if len(each[1]) > 1), None)
    if changed is not None:
        partition, counts = changed
        name = partition_name(handle.schema, partition)
        place = f"partition {name} of {handle.uri}" if name else handle.uri
        shown = " and ".join(str(count) for count in sorted(counts))
        raise UnsupportedError(
            f"{place} has {shown} buckets in the two snapshots: a key may be in different buckets, "
            "so the snapshots cannot be compared. Choose two snapshots before or two snapshots "
            "after the change of the bucket count"
        )
