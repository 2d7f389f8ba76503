# SPDX-License-Identifier: Apache-2.0
"""Writes a batch as if it were committed right after the snapshot from which it was computed.

The keys that other commits have changed since that snapshot are left out of the batch, so that
their newer rows are kept. If another commit changes a key of the batch before the batch is
published, the files of the batch are written again without this key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lakeformat.errors import CommitConflictError, CommitOutcomeUnknownError, LakeError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.followed_files import file_names
from lakeformat.paimon.commit.identity import EarlierCommits
from lakeformat.paimon.commit.overwrite import Dynamic, Replacement
from lakeformat.paimon.commit.read_snapshot_check import Touches
from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.datafile.system_fields import VALUE_KIND
from lakeformat.paimon.existing_keys import find_keys
from lakeformat.paimon.expiry_race import head_of
from lakeformat.paimon.handle import TableHandle, has_hash_index
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.manifest import FileKind, ManifestEntry
from lakeformat.paimon.metadata.snapshot import READ_SNAPSHOT
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.partition_filter import PartitionFilter, these_partitions
from lakeformat.paimon.read.data_files import DataFiles
from lakeformat.paimon.read.deletions import DeletedRows
from lakeformat.paimon.transaction_order.changes_since import (
    ChangedKeys,
    ChangesSince,
    changes_since,
    final,
    is_in_history,
    read_base,
    touched_by,
)
from lakeformat.paimon.transaction_order.newer_files import (
    NO_FILES,
    NewerFiles,
    newer_files,
)
from lakeformat.paimon.transaction_order.supported import require_transaction_order
from lakeformat.paimon.write.table_writer import TableWriter
from lakeformat.rows.row_kinds import Kinds
from lakeformat.tables.driver import Round, Steps, carry_out

__all__ = ["BatchInOrder"]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The files of a batch, which fit the table at the snapshot ``changes.head``."""

    changes: ChangesSince
    messages: Sequence[CommitMessage]
    replaced: Replacement
    newer: NewerFiles
    """The newer files that an overwrite keeps or writes again; ``NO_FILES`` for an append."""
    is_given: bool = False
    """True if the files are those in ``BatchInOrder.given``."""

    @property
    def touches(self) -> Touches:
        """A function that takes partitions, and returns a mask of those that the batch changes."""
        if isinstance(self.replaced, PartitionFilter):
            return self.replaced.mask
        return touched_by(self.messages)

    @property
    def _highest_numbers(self) -> dict[tuple[bytes, int], int]:
        """The highest sequence number in the files, by partition and bucket."""
        found: dict[tuple[bytes, int], int] = {}
        for message in self.messages:
            place = message.partition, message.bucket
            for file in message.new_files:
                found[place] = max(found.get(place, -1), file.max_sequence_number)
        return found

    def on(self, changes: ChangesSince) -> _Prepared | None:
        """Return the same files for a newer snapshot, or None if they must be written again.

        The files must be written again if a key of the batch was changed since, if a compaction has
        merged newer rows, if keys may have got other buckets, or if a rollback has removed the
        snapshot of the files.
        """
        handle = changes.handle
        if not is_in_history(handle, self.changes.head, changes.head):
            return None
        since = changes_since(handle, self.changes.head, changes.head).within(self.touches)
        if since.added and has_hash_index(handle):
            return None
        newer = self.newer
        if isinstance(self.replaced, PartitionFilter):
            # Files that were added while the batch was written stay on level 0: a stream never
            # makes a batch start again.
            late = frozenset[str]()
            if not self.is_given:
                late = self.newer.kept.union(*map(file_names, since.added))
            written = {each.file.file_name for group in self.newer.written_again for each in group}
            newer = newer_files(changes, self.replaced, late, self._highest_numbers, written)
            if newer.written_again != self.newer.written_again:
                return None
        changed = ChangedKeys(since)
        if any(changed.among(rows).any() for rows, _ in _stored_rows(handle, self.messages)):
            return None
        return replace(self, changes=changes, newer=newer)


@dataclass(slots=True)
class BatchInOrder:
    """One batch with ``conflict="transaction-order"``: it is added to a table, or replaces
    partitions.

    Rows that other commits have changed since the batch's snapshot are kept.
    """

    handle: TableHandle
    data: Any
    kinds: Any
    options: CommitOptions
    """``read_snapshot`` is the snapshot from which the batch was computed."""
    replaced: Replacement
    earlier: EarlierCommits | None
    can_be_read_again: bool
    given: Sequence[CommitMessage] | None = None
    """Files of other writers with the rows of the batch, used in place of ``data``.

    The caller deletes these files if the batch is not published.
    """
    _is_read: bool = False
    _changes: ChangesSince | None = None
    _prepared: _Prepared | None = None
    _report: CommitReport | None = None

    def run(self) -> CommitReport:
        """Write and publish the batch; plan and publish it again after a conflict.

        Raise CommitConflictError if the changes since the batch's snapshot are not known, or if
        another batch or overwrite has changed the same partitions. After a ``LakeError`` no new
        file remains, except after ``CommitOutcomeUnknownError``.
        """
        try:
            carry_out(
                Steps(
                    name=f"batch on {self.handle.uri}",
                    head=head_of(self.handle),
                    plan=self._plan,
                    take=lambda _: None,
                    finish=self._write_and_commit,
                    environment=self.handle.environment,
                )
            )
        except CommitOutcomeUnknownError:
            raise
        except LakeError:
            self._discard()
            raise
        assert self._report is not None
        return self._report

    def _plan(self) -> Round[None, None]:
        options, head = self.options, latest_snapshot(self.handle.storage, self.handle.layout)
        assert options.read_snapshot is not None
        # Rows of other writers, which may have new columns, are written again with all values.
        handle = self.handle = newest_schema(self.handle)
        require_transaction_order(handle)
        if self._is_read and self._prepared is None and not self.can_be_read_again:
            raise _read_once(handle)
        base = read_base(handle, options.read_snapshot, options.read_identity, head)
        self._changes = changes_since(handle, base, head)
        return Round(units=(), work=lambda _: None)

    def _write_and_commit(self) -> None:
        changes, earlier = self._changes, self._prepared
        assert changes is not None
        if earlier is None and self.given is not None:
            earlier = self._as_given(changes, self.given)
        prepared = None if earlier is None else earlier.on(changes)
        if prepared is None:
            prepared = self._write(changes, earlier)
            self._discard()
        self._prepared = prepared
        changes.require_no_batch(
            prepared.touches, self.options.commit, replaces=prepared.replaced is not None
        )
        self._commit(prepared)

    def _write(self, changes: ChangesSince, earlier: _Prepared | None) -> _Prepared:
        """Write the rows of the batch to new files.

        The rows are read from the files of the attempt ``earlier`` or, without it, from the input.
        """
        with TableWriter(
            self.handle,
            replaces=self.replaced is not None,
            within=self.replaced if isinstance(self.replaced, PartitionFilter) else None,
            is_committed_here=True,
            find_keys=find_keys,
            as_of=changes.as_of(),
        ) as writer:
            if earlier is None:
                self._is_read = True
                writer.write(self.data, self.kinds)
                replaced = self._replaced_by(writer)
            else:
                for rows, kinds in _stored_rows(self.handle, earlier.messages):
                    writer.write_stored(rows, kinds)
                replaced = earlier.replaced
            newer = NO_FILES
            if isinstance(replaced, PartitionFilter):
                newer = newer_files(changes, replaced)
                for rows in newer.rows(changes):
                    writer.write_stored(rows, np.zeros(rows.num_rows, np.int8), is_newer=True)
            return _Prepared(changes, writer.prepare(), replaced, newer)

    def _as_given(self, changes: ChangesSince, given: Sequence[CommitMessage]) -> _Prepared:
        """Return the given files, which fit the table at the snapshot of the batch."""
        base, replaced = changes.base, self.replaced
        if isinstance(replaced, Dynamic) and given:
            partitions = sorted({message.partition for message in given})
            rows = pa.array(partitions, pa.large_binary())
            replaced = these_partitions(self.handle.schema, rows)
        nothing = ChangesSince(self.handle, base, base, (), ())
        return _Prepared(nothing, given, replaced, NO_FILES, is_given=True)

    def _replaced_by(self, writer: TableWriter) -> Replacement:
        """Return the partitions to replace.

        A dynamic overwrite replaces the partition of each row of the batch, even if this row is not
        written because another commit has changed its key.
        """
        if isinstance(self.replaced, Dynamic) and writer.partitions:
            rows = pa.array(writer.partitions, pa.large_binary())
            return these_partitions(self.handle.schema, rows)
        return self.replaced

    def _commit(self, prepared: _Prepared) -> None:
        options, head = self.options, prepared.changes.head
        options = replace(
            options,
            read_snapshot=0 if head is None else head.id,
            read_identity=None if head is None else head.identity,
            properties={**options.properties, READ_SNAPSHOT: str(options.read_snapshot)},
            kept_files=prepared.newer.kept,
            is_recorded=options.commit is not None,
        )
        self._report = commit_messages(
            self.handle,
            prepared.messages,
            options,
            overwrite=prepared.replaced,
            earlier=self.earlier,
            from_elsewhere=prepared.messages is self.given,
        )
        if self._report.replayed:  # another attempt with this identity was faster
            self._discard()
        elif self.given is not None and prepared.messages is not self.given:
            delete_written(self.handle, self.given)  # their rows were written again

    def _discard(self) -> None:
        """Delete the files of the last attempt, which are not published; files in ``given`` are
        kept.
        """
        if self._prepared is not None and self._prepared.messages is not self.given:
            delete_written(self.handle, self._prepared.messages)
        self._prepared = None


def _stored_rows(
    handle: TableHandle, messages: Sequence[CommitMessage]
) -> Iterator[tuple[pa.RecordBatch, Kinds]]:
    """Stream the rows of prepared files with their kinds.

    If a message has changelog files, only these are read: with ``changelog-producer=input`` they
    have all rows, but data files have only the newest row of each key.
    """
    files = DataFiles(handle, None, DeletedRows(handle, ()))
    names = [field.name for field in handle.schema.fields]
    for message in messages:
        total = message.total_buckets or handle.options.bucket
        for file in message.changelog_files or message.new_files:
            entry = ManifestEntry(FileKind.ADD, message.partition, message.bucket, total, file)
            for rows in files.key_values(entry, handle.schema.fields, numbered=False):
                yield rows.select(names), rows.column(VALUE_KIND.name).to_numpy()


def _read_once(handle: TableHandle) -> CommitConflictError:
    return final(
        f"{handle.uri} got a newer snapshot while this batch was written. The batch must be "
        "written again, but its rows can be read only once. Nothing was published; repeat the "
        "work, or pass rows that can be read again, such as a pyarrow Table"
    )
