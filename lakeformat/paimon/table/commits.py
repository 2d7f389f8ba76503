# SPDX-License-Identifier: Apache-2.0
"""The methods of a table that write, check, publish and delete rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Never
from warnings import warn

from lakeformat.paimon.table.reads import TableReads
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.position import AnyPosition, Position

if TYPE_CHECKING:
    from lakeformat.paimon.commit.commit_report import CommitReport
    from lakeformat.paimon.metadata.commit_message import CommitMessage
    from lakeformat.paimon.staged import TableStaged
    from lakeformat.paimon.write.table_writer import TableWriter
    from lakeformat.tables.arguments import (
        Conflict,
        Overwritten,
        PartitionSpec,
    )
    from lakeformat.tables.checks import CheckRequest
    from lakeformat.tables.row_checks.check_report import CheckReport
    from lakeformat.tables.run_record import RunRecord, RunRecords

__all__ = ["TableCommits"]


class TableCommits(TableReads):
    """The methods of a table that write, check, publish and delete rows."""

    def write(
        self,
        data: Any,
        kinds: Any = None,
        *,
        overwrite: Overwritten | None = None,
        commit: CommitId | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        read_snapshot: AnyPosition | str | None = None,
        conflict: Conflict | None = None,
        **unknown: Never,
    ) -> CommitReport:
        """Add rows in one commit, or replace partitions; each ``commit`` is published only once.

        ``data`` is a pyarrow, pandas or polars object, or an iterable of those; missing columns get
        their default or nulls. With a primary key, a row is merged with the existing row of its
        key.

        ``kinds`` is the kind of each row: insert ('+I'), before and after an update ('-U', '+U'),
        or delete ('-D'). Pass one value per row, or the name of a column of ``data``. Tables
        without a primary key refuse '-U' and '-D'.

        ``overwrite="table"`` replaces all rows, ``{"dt": "2024-01-01"}`` the rows of the matching
        partitions, and ``"partitions"`` the rows of every partition that gets a row.
        ``read_snapshot`` is the snapshot from which the rows were computed, as a number, a position
        or the text of a position. If another commit has changed the written partitions since,
        CommitConflictError is raised. With dynamic buckets, the rows are written again if another
        writer has assigned buckets to keys meanwhile. If ``data`` is an iterator, which can be read
        only once, BucketsChangedError is raised instead.

        ``conflict="transaction-order"`` keeps what other commits changed after ``read_snapshot``,
        instead of raising CommitConflictError. The rows count as written at that snapshot: a later
        row or delete of a key wins, and an overwrite deletes only older rows. This needs a primary
        key, the merge engine ``deduplicate``, and the snapshots since ``read_snapshot``. For a
        ``read_snapshot`` without ``conflict``, the table option ``write.conflict`` applies.

        The snapshot stores ``properties``, and the larger one of ``watermark`` (an event time in
        epoch milliseconds) and the table's watermark.

        If ``commit`` was published before, nothing is written, even if the rows differ. But an
        append table raises InvalidRequestError if the length of ``data`` is known and is not the
        number of rows of the published commit.

        Rows of a primary-key table are added to level 0, as with ``write-only``. Where reads skip
        level 0 (``first-row``, deletion vectors), a compaction makes the rows visible.

        After a ``LakeError`` nothing was published and no file is left behind, except after
        ``CommitOutcomeUnknownError``: then repeat the call with the same ``commit``.
        """
        if unknown:
            from lakeformat.tables.unknown_arguments import refuse_unknown  # only for a message

            refuse_unknown(self.write, unknown)
        from lakeformat.paimon.table.writes import RowsWrite, commit_options, replacement

        is_in_order = self._is_in_order(conflict, read_snapshot)
        options = commit_options(self._handle, commit, watermark, properties, read_snapshot)
        replaced = replacement(self._handle, overwrite)
        return RowsWrite(self._handle, data, kinds, options, replaced, is_in_order).run()

    def new_writer(
        self,
        *,
        overwrite: Overwritten | None = None,
        read_snapshot: AnyPosition | str | None = None,
        conflict: Conflict | None = None,
    ) -> TableWriter:
        """Return a writer whose messages are committed later, here or in another process.

        For a commit with ``overwrite``, or with ``conflict="transaction-order"``, create the writer
        with the same arguments. In a table with buckets, write each bucket with only one writer at
        a time. Independent writers assign the same sequence numbers, so it is undefined which of
        two rows with one key is newer.
        """
        from lakeformat.paimon.table.writes import commit_options, new_writer, replacement

        replaced = replacement(self._handle, overwrite)
        as_of = None
        if self._is_in_order(conflict, read_snapshot):
            from lakeformat.paimon.transaction_order.changes_since import written_as_of

            options = commit_options(self._handle, None, None, None, read_snapshot)
            as_of = written_as_of(self._handle, options.read_snapshot, options.read_identity)
        return new_writer(self._handle, replaced, is_committed_here=False, as_of=as_of)

    def commit(
        self,
        messages: Iterable[CommitMessage],
        *,
        overwrite: Overwritten | None = None,
        commit: CommitId | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        read_snapshot: AnyPosition | str | None = None,
        conflict: Conflict | None = None,
        **unknown: Never,
    ) -> CommitReport:
        """Publish prepared files, with the arguments of ``write``.

        Pass each message to one commit only; a retry passes it again, with the same ``commit``.
        Compacted files become a separate snapshot after the snapshot of new rows. An ``overwrite``
        also deletes rows added after the messages were prepared. To get CommitConflictError in that
        case, pass as ``read_snapshot`` the snapshot from which the rows were computed. With
        ``conflict="transaction-order"``, rows that are newer than this snapshot are kept, as by
        ``write``. If a key of the messages was changed since, this process writes the rows of the
        messages again.
        """
        if unknown:
            from lakeformat.tables.unknown_arguments import refuse_unknown  # only for a message

            refuse_unknown(self.commit, unknown)
        from lakeformat.paimon.metadata.commit_message import check_messages
        from lakeformat.paimon.table.writes import commit_options, commit_prepared, replacement

        messages = check_messages(messages)
        is_in_order = self._is_in_order(conflict, read_snapshot)
        options = commit_options(self._handle, commit, watermark, properties, read_snapshot)
        replaced = replacement(self._handle, overwrite)
        return commit_prepared(self._handle, messages, options, replaced, is_in_order=is_in_order)

    def abort(self, messages: Iterable[CommitMessage]) -> list[str]:
        """Remove the files of messages that will not be committed.

        Return the URIs of files that could not be removed. Raise InvalidRequestError if the table
        refers to one of the files, or if none of the files exists. Call ``abort`` only if no
        commit of these messages is in progress. After ``CommitOutcomeUnknownError`` first repeat
        the commit.
        """
        from lakeformat.paimon.deletion.abort import abort_messages
        from lakeformat.paimon.metadata.commit_message import check_messages

        return abort_messages(self._handle, check_messages(messages))

    def read_message(self, content: bytes) -> CommitMessage:
        """Return the message that ``CommitMessage.to_bytes`` has encoded.

        Raise InvalidRequestError if ``content`` is damaged, or is not a message.
        """
        from lakeformat.paimon.metadata.commit_message import CommitMessage

        return CommitMessage.from_bytes(content)

    def find_commit(self, commit: CommitId) -> CommitReport | None:
        """Return the report of the earlier commit with this identity; None if it is not found.

        The commit may be of any kind. Raise CommitOutcomeUnknownError if the commit is found, but
        the branch was renamed or deleted after this table was opened. Raise CommitUndecidableError
        if ``commit.first_try_millis`` is set and an expired snapshot may have been the commit.
        Raise InvalidRequestError if a later commit of the same user is found instead, or if the
        rows of ``commit.replaces`` cannot be removed any more (see ``CommitId``).
        """
        from lakeformat.paimon.commit.earlier_result import find_commit

        return find_commit(self._handle, commit)

    def stream_batch(
        self, commit: CommitId, *, checkpoint: str | None = None
    ) -> AbstractContextManager[CommitId | None]:
        """Commit one batch of a stream exactly once, however late it is repeated.

        ``with table.stream_batch(CommitId("my-stream", 7)) as commit``: ``commit`` is None if the
        batch is already published; otherwise pass ``commit`` to the write. Leaving the block
        without an exception marks the batch as published. Each batch needs a greater identifier
        than the batch before it. While the block runs, a consumer with the stream's name keeps the
        snapshots. ``checkpoint`` is the id of the stream's checkpoint, if it has one: raise
        ``InvalidRequestError`` if another checkpoint has published a batch with this identifier.
        """
        from lakeformat.paimon.table.batches import stream_table
        from lakeformat.tables.batch_log import stream_batch

        return stream_batch(stream_table(self._handle), commit, checkpoint)

    def begin(self) -> AbstractContextManager[Position]:
        """Keep the newest snapshot and all later ones while a batch runs.

        ``with table.begin() as position``: read the table at ``position``, and write the batch with
        ``read_snapshot=position``. While the block runs, a consumer ``batch-<id>`` keeps the
        snapshots. If the process dies in the block, the consumer remains: delete it, or set the
        table option ``consumer.expiration-time``. Raise InvalidRequestError if the option
        ``consumer.changelog-only`` lets consumers keep changelogs only.
        """
        from lakeformat.paimon.table.batches import begin

        return begin(self._handle)

    def remembered(self, commit: CommitId) -> AbstractContextManager[CommitId | None]:
        """Do the same as ``stream_batch``; ``remembered`` is its old name."""
        warn("Table.remembered is now Table.stream_batch", DeprecationWarning, stacklevel=2)
        return self.stream_batch(commit)

    @property
    def staged(self) -> TableStaged:
        """The staged results of the table: files that are written but not published yet."""
        from lakeformat.paimon.staged import TableStaged

        return TableStaged(self._handle, self.commit)

    @property
    def has_unique_keys(self) -> bool:
        return bool(self.schema.primary_keys)

    @property
    def replaces_repeated_rows(self) -> bool:
        from lakeformat.paimon.aggregate_rules import accumulating_columns

        return self.has_unique_keys and not accumulating_columns(self.schema)

    def find_run(self, user: str) -> RunRecord | None:
        """Return the record of the last success of the run with this commit user, or None.

        Records are kept for 90 days.
        """
        return self.runs.read(user)

    def record_run(self, record: RunRecord) -> None:
        """Record the success of a run in the table's directory; records are kept for 90 days."""
        self.runs.write(record, self._handle.environment)

    def truncate(
        self, *, commit: CommitId | None = None, read_snapshot: AnyPosition | str | None = None
    ) -> CommitReport:
        """Delete all rows; earlier snapshots keep the rows until these snapshots expire.

        Raise CommitConflictError if the table has changed since ``read_snapshot``.
        """
        return self._delete([{}], commit, read_snapshot)

    def drop_partitions(
        self,
        partitions: Iterable[PartitionSpec],
        *,
        commit: CommitId | None = None,
        read_snapshot: AnyPosition | str | None = None,
    ) -> CommitReport:
        """Delete the rows of partitions, each named by the values of some partition columns.

        Marks of ``mark_partitions_done`` are deleted, too. Values that match no partition delete
        nothing. Raise CommitConflictError if these partitions have changed since ``read_snapshot``.
        """
        from lakeformat.tables.arguments import partitions_to_drop

        return self._delete(partitions_to_drop(partitions), commit, read_snapshot)

    def _check(self, request: CheckRequest) -> CheckReport:
        from lakeformat.paimon.checks.check import check_table

        staged = None if request.staged is None else self.staged.named(request.staged)
        return check_table(
            self._handle,
            request.checks,
            staged=staged,
            replaces=request.replaces,
            where=request.where,
            executor=request.executor,
        )

    @property
    def runs(self) -> RunRecords:
        """The records of runs in the table's directory."""
        from lakeformat.tables.run_record import RunRecords

        return RunRecords(self._handle.storage, self._handle.layout.run_directory)

    def _is_in_order(
        self, conflict: Conflict | None, read_snapshot: AnyPosition | str | None
    ) -> bool:
        if conflict is None and read_snapshot is None:
            return False
        from lakeformat.paimon.transaction_order.supported import is_transaction_order

        return is_transaction_order(self._handle, conflict, read_snapshot)

    def _delete(
        self,
        partitions: Collection[PartitionSpec],
        commit: CommitId | None,
        read_snapshot: AnyPosition | str | None,
    ) -> CommitReport:
        from lakeformat.paimon.table.writes import delete_partitions

        return delete_partitions(self._handle, partitions, commit, read_snapshot)
