# SPDX-License-Identifier: Apache-2.0
"""The changes that other commits made after the snapshot from which a batch was computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.paimon.commit.conflict_text import described, named
from lakeformat.paimon.commit.deltas import delta_of, newest_first
from lakeformat.paimon.commit.read_snapshot_check import Touches
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import READ_SNAPSHOT, CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    latest_snapshot,
    read_snapshot_if_present,
)
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.write.as_of import WrittenAsOf
from lakeformat.rows.groups import Mask
from lakeformat.rows.repeated_values import in_full_columns
from lakeformat.rows.row_hashes import Hashes, row_hashes
from lakeformat.rows.row_kinds import is_retract
from lakeformat.tables.commit_id import CommitId

__all__ = [
    "ChangedKeys",
    "ChangesSince",
    "changes_since",
    "final",
    "is_in_history",
    "read_base",
    "touched_by",
    "written_as_of",
]


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """The commits after the snapshot ``base`` up to the snapshot ``head``."""

    handle: TableHandle
    base: Snapshot | None
    """None for the empty table before the first snapshot."""
    head: Snapshot | None
    added: tuple[ManifestColumns, ...]
    """For each append, oldest first, the files that the append added, including files that a
    compaction has replaced since.
    """
    batches: tuple[tuple[Snapshot, ManifestColumns], ...]
    """The overwrites, and the batches in transaction order, with their files."""

    def as_of(self) -> WrittenAsOf:
        """Return the base snapshot and the changed keys, for a writer that leaves out rows of these
        keys.
        """
        return WrittenAsOf(self.base, ChangedKeys(self).among)

    def within(self, touches: Touches) -> ChangesSince:
        """Return the changes with only the appends to partitions that ``touches`` selects, and
        without ``batches``.
        """
        chosen = (files.filter(touches(files.partition.to_arrow())) for files in self.added)
        return replace(self, added=tuple(files for files in chosen if len(files)), batches=())

    def require_no_batch(
        self, touches: Touches, commit: CommitId | None = None, *, replaces: bool = False
    ) -> None:
        """Raise CommitConflictError if a batch or overwrite changed a partition that ``touches``
        selects.

        With ``replaces``, an earlier batch of the same user is allowed if it was computed from the
        same snapshot, because the new batch replaces the rows of the earlier one.
        """
        for snapshot, files in self.batches:
            touched = files.filter(touches(files.partition.to_arrow()))
            is_own = commit is not None and snapshot.commit_user == commit.user
            if not len(touched) or (is_own and replaces and self._has_same_base(snapshot)):
                continue
            where = described(self.handle, touched)
            if is_own:
                what = "a commit of the same user"
                advice = (
                    "An overwrite replaces the rows of that commit only if both were computed from "
                    "the same snapshot. Nothing was published; read the table again, and pass the "
                    "new position. If an Airflow task was cleared, clear the task that read the "
                    "table, too, or set on_clear='skip'"
                )
            else:
                is_batch = READ_SNAPSHOT in (snapshot.properties or {})
                what = "another batch" if is_batch else "an overwrite"
                advice = (
                    "Nothing was published; read the table again and repeat the work, and let only "
                    "one batch or overwrite at a time write a partition"
                )
            raise final(
                f"this batch on {self.handle.uri} was computed from {_text_of(self.base)}, but "
                f"{what}, {named(snapshot)}, has changed the same partitions since: {where}. "
                f"{advice}"
            )

    def _has_same_base(self, snapshot: Snapshot) -> bool:
        number = 0 if self.base is None else self.base.id
        return (snapshot.properties or {}).get(READ_SNAPSHOT) == str(number)


def touched_by(messages: Sequence[CommitMessage]) -> Touches:
    """Return a function that takes partitions, and returns a mask: True for each partition of
    ``messages``.
    """
    partitions = sorted({message.partition for message in messages})
    own = pa.array(partitions, pa.large_binary())
    return lambda rows: pc.is_in(rows, own).to_numpy(zero_copy_only=False)


def read_base(
    handle: TableHandle, number: int, identity: str | None, head: Snapshot | None
) -> Snapshot | None:
    """Return the snapshot ``number`` from which a batch was computed; None for number 0.

    ``identity`` is the identity of the snapshot, None if unknown. Raise CommitConflictError if the
    snapshot has expired, or if a rollback has removed it. Raise InvalidRequestError for a negative
    number.
    """
    if number < 0:
        raise InvalidRequestError(
            f"read_snapshot is {number}, but must be 0 (the empty table) or more"
        )
    if number == 0:
        return None
    newest = 0 if head is None else head.id
    found = head
    if number < newest:
        found = read_snapshot_if_present(handle.storage, handle.layout, number)
        if found is None:
            raise _expired(handle, number, number)
    if number > newest or (identity and found is not None and found.identity != identity):
        raise final(
            f"{handle.uri} was read at snapshot {number}, which is not in its history (newest "
            f"snapshot: {newest or 'none'}): the table was rolled back, or the snapshot belongs to "
            "another table. Nothing was published; read again and repeat the work"
        )
    return found


def is_in_history(handle: TableHandle, snapshot: Snapshot | None, head: Snapshot | None) -> bool:
    """Return True if ``snapshot`` still exists in the history of ``head``.

    Return False if it has expired, or if a rollback removed it. ``snapshot=None`` is the empty
    table, which is always in the history.
    """
    if snapshot is None:
        return True
    if head is None or head.id < snapshot.id:
        return False
    is_head = head.id == snapshot.id
    found = (
        head if is_head else read_snapshot_if_present(handle.storage, handle.layout, snapshot.id)
    )
    return found is not None and found.identity == snapshot.identity


def written_as_of(handle: TableHandle, number: int | None, identity: str | None) -> WrittenAsOf:
    """Return the snapshot from which a batch was computed, for a writer of messages.

    The result has no changed keys, so the writer writes all rows. The later commit finds the keys
    that other commits have changed since, and leaves out their rows.
    """
    assert number is not None
    head = latest_snapshot(handle.storage, handle.layout)
    base = read_base(handle, number, identity, head)
    return ChangesSince(handle, base, base, (), ()).as_of()


def changes_since(
    handle: TableHandle, base: Snapshot | None, head: Snapshot | None
) -> ChangesSince:
    """Return the appends, overwrites and batches after ``base`` up to ``head``, with their files.

    Raise CommitConflictError if one of these snapshots has expired: its keys are then unknown.
    """
    added: list[ManifestColumns] = []
    batches: list[tuple[Snapshot, ManifestColumns]] = []
    since = 0 if base is None else base.id
    number = 0 if head is None else head.id
    for found in newest_first(handle, head, since) if head is not None else ():
        if found is None:
            raise _expired(handle, since, number)
        number = found.id - 1
        if found.commit_kind is CommitKind.OVERWRITE or READ_SNAPSHOT in (found.properties or {}):
            batches.append((found, delta_of(handle, found)))
        elif found.commit_kind is CommitKind.APPEND:
            delta = delta_of(handle, found)
            added.append(delta.filter(~delta.is_delete & (delta.bucket.numbers >= 0)))
    return ChangesSince(handle, base, head, tuple(reversed(added)), tuple(batches))


def final(text: str) -> CommitConflictError:
    """Return a ``CommitConflictError`` with ``is_final``: the batch must be computed again."""
    error = CommitConflictError(text)
    error.is_final = True
    return error


class ChangedKeys:
    """The keys in files that other commits added; all are read when first needed.

    Memory holds 16 bytes for each key.
    """

    def __init__(self, changes: ChangesSince) -> None:
        self._handle = handle = changes.handle
        by_name = {field.name: field for field in handle.schema.fields}
        self._fields = tuple(by_name[name] for name in handle.schema.primary_keys)
        self._files = DataFiles(handle, changes.head, DeletedRows(handle, ()))
        self._entries = [entry for added in changes.added for entry in added.entries()]
        self._known: Hashes | None = None

    def among(self, rows: pa.RecordBatch) -> Mask:
        """Return a mask of the rows whose key another commit has changed."""
        if not self._entries:
            return np.zeros(rows.num_rows, np.bool_)
        if self._known is None:
            self._known = _in_order(np.concatenate([*self._hashes()]))
        return _is_among(self._hashes_of(rows), self._known)

    def _hashes(self) -> Iterator[Hashes]:
        ignores_deletes = self._handle.options.ignore_delete
        for entry in self._entries:
            for rows in self._files.key_values(entry, self._fields, numbered=False):
                if ignores_deletes:
                    kinds = rows.column(VALUE_KIND.name).to_numpy()
                    rows = rows.filter(pa.array(~is_retract(kinds)))
                yield self._hashes_of(rows)

    def _hashes_of(self, rows: pa.RecordBatch) -> Hashes:
        keys = rows.select([field.name for field in self._fields])
        table = in_full_columns(pa.Table.from_batches([keys]))
        return row_hashes([column.combine_chunks() for column in table.columns])


def _in_order(hashes: Hashes) -> Hashes:
    return hashes[np.lexsort((hashes[:, 1], hashes[:, 0]))]


def _is_among(wanted: Hashes, known: Hashes) -> Mask:
    """Return a mask of the hashes in ``wanted`` that are in ``known``.

    Each hash is a pair of integers, and ``known`` is sorted.
    """
    found = np.zeros(len(wanted), np.bool_)
    at = np.searchsorted(known[:, 0], wanted[:, 0])
    left = np.arange(len(wanted))
    while len(left):  # once more for each hash that shares only its first word
        left = left[at[left] < len(known)]
        left = left[known[at[left], 0] == wanted[left, 0]]
        same = known[at[left], 1] == wanted[left, 1]
        found[left[same]] = True
        left = left[~same]
        at[left] += 1
    return found


def _text_of(base: Snapshot | None) -> str:
    return "the empty table" if base is None else f"snapshot {base.id}"


def _expired(handle: TableHandle, read: int, number: int) -> CommitConflictError:
    base = f"snapshot {read}" if read else "the empty table"
    return final(
        f"this batch on {handle.uri} was computed from {base}, but snapshot {number} has "
        "expired, so the keys that changed since are not known. Nothing was published; read again "
        "and repeat the work, and keep the snapshots while the batch runs: use "
        "'with table.begin() as position', or increase 'snapshot.time-retained'"
    )
