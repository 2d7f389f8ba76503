# SPDX-License-Identifier: Apache-2.0
"""Writes a batch as of the snapshot from which it was computed; newer rows of its keys are kept.

The keys that other commits have changed since that snapshot are left out of the batch. If another
commit changes the same partitions before the batch is published, the batch is written again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CommitConflictError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.identity import EarlierCommits
from lakeformat.paimon.commit.overwrite import Dynamic, Replacement
from lakeformat.paimon.commit.read_snapshot_check import Touches
from lakeformat.paimon.existing_keys import find_keys
from lakeformat.paimon.expiry_race import head_of
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.partition_filter import PartitionFilter, these_partitions
from lakeformat.paimon.transaction_order.changes_since import (
    READ_SNAPSHOT,
    ChangedKeys,
    ChangesSince,
    changes_since,
    read_base,
)
from lakeformat.paimon.transaction_order.newer_files import newer_files
from lakeformat.paimon.write.as_of import WrittenAsOf
from lakeformat.paimon.write.table_writer import TableWriter
from lakeformat.tables.driver import Round, Steps, carry_out
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["BatchInOrder"]


@dataclass(slots=True)
class BatchInOrder:
    """One batch that is added to a table, or that replaces partitions, in transaction order."""

    handle: TableHandle
    data: Any
    kinds: Any
    options: CommitOptions
    """``read_snapshot`` is the snapshot from which the batch was computed."""
    replaced: Replacement
    earlier: EarlierCommits | None
    can_be_read_again: bool
    _changes: ChangesSince | None = None
    _report: CommitReport | None = None
    _refusal: CommitConflictError | None = None
    _attempts: int = 0

    def run(self) -> CommitReport:
        """Write and publish the batch, and write it again after a conflict.

        Raise CommitConflictError if the changes since its snapshot are not known, or if another
        batch has changed the same partitions.
        """
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
        if self._refusal is not None:
            raise self._refusal
        assert self._report is not None
        return self._report

    def _plan(self) -> Round[None, None] | None:
        self._attempts += 1
        handle, options = self.handle, self.options
        assert options.read_snapshot is not None
        head = latest_snapshot(handle.storage, handle.layout)
        try:
            if self._attempts > 1 and not self.can_be_read_again:
                raise _read_once(handle)
            base = read_base(handle, options.read_snapshot, options.read_identity, head)
            self._changes = changes_since(handle, base, head)
        except CommitConflictError as refusal:  # another plan would end in the same way
            self._refusal = refusal
            return None
        return Round(units=(), work=lambda _: None)

    def _write_and_commit(self) -> None:
        changes = self._changes
        assert changes is not None
        as_of = WrittenAsOf(changes.base, ChangedKeys(changes).among)
        with TableWriter(
            self.handle,
            replaces=self.replaced is not None,
            within=self.replaced if isinstance(self.replaced, PartitionFilter) else None,
            is_committed_here=True,
            find_keys=find_keys,
            as_of=as_of,
        ) as writer:
            writer.write(self.data, self.kinds)
            replaced = self._replaced_by(writer)
            kept = frozenset[str]()
            if isinstance(replaced, PartitionFilter):
                kept = self._keep_newer_rows(writer, changes, replaced)
            messages = writer.prepare()
            try:
                changes.require_no_batch(_touches(replaced, messages))
            except CommitConflictError as refusal:
                self._refusal = refusal
                writer.abort()
                return
        self._commit(writer, messages, replaced, kept)

    def _replaced_by(self, writer: TableWriter) -> Replacement:
        """Return the partitions to replace, also those of which every row is left out."""
        if isinstance(self.replaced, Dynamic) and writer.partitions:
            rows = pa.array(writer.partitions, pa.large_binary())
            return these_partitions(self.handle.schema, rows)
        return self.replaced

    def _keep_newer_rows(
        self, writer: TableWriter, changes: ChangesSince, replaced: PartitionFilter
    ) -> frozenset[str]:
        """Write the newer rows that a compaction has merged with older ones; return the names of
        the files with other newer rows.
        """
        newer = newer_files(changes, replaced)
        if changes.head is not None:
            for rows in newer.rows(self.handle, changes.head):
                writer.write_newer(rows)
        return frozenset(newer.kept)

    def _commit(
        self,
        writer: TableWriter,
        messages: list[CommitMessage],
        replaced: Replacement,
        kept: frozenset[str],
    ) -> None:
        changes, options = self._changes, self.options
        assert changes is not None
        head = changes.head
        options = replace(
            options,
            read_snapshot=0 if head is None else head.id,
            read_identity=None if head is None else head.identity,
            properties={**options.properties, READ_SNAPSHOT: str(options.read_snapshot)},
            kept_files=kept,
        )
        with kept_if_published(writer.abort):
            self._report = commit_messages(
                self.handle, messages, options, overwrite=replaced, earlier=self.earlier
            )
        if self._report.replayed:  # another attempt with this identity was faster
            writer.abort()


def _touches(replaced: Replacement, messages: list[CommitMessage]) -> Touches:
    if isinstance(replaced, PartitionFilter):
        return replaced.mask
    partitions = {message.partition for message in messages}
    return lambda rows: pc.is_in(rows, pa.array(sorted(partitions), pa.large_binary())).to_numpy(
        False
    )


def _read_once(handle: TableHandle) -> CommitConflictError:
    return CommitConflictError(
        f"another commit changed the same partitions of {handle.uri} while this batch was "
        "written, and its rows can be read only once. Nothing was published; repeat the work, or "
        "pass rows that can be read again, such as a pyarrow Table"
    )
