# SPDX-License-Identifier: Apache-2.0
"""The methods of a table that write rows, and replace or delete partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.table.history import TableHistory

if TYPE_CHECKING:
    from lakeformat.executor import Executor
    from lakeformat.iceberg.staged.table_staged import TableStaged
    from lakeformat.iceberg.write.message import IcebergCommitMessage
    from lakeformat.iceberg.write.overwrite import RowsToOverwrite
    from lakeformat.iceberg.write.prepared_writer import PreparedWriter
    from lakeformat.iceberg.write.report import WriteReport
    from lakeformat.tables.arguments import PartitionSpec
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.run_record import RunRecord, RunRecords

__all__ = ["TableWrites"]


class TableWrites(TableHistory):
    """The methods of a table that write rows, and replace or delete partitions."""

    def write(
        self,
        data: Any,
        kinds: Any = None,
        *,
        overwrite: RowsToOverwrite | None = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> WriteReport:
        """Add rows in one commit; with ``overwrite``, replace rows.

        ``data`` is a pyarrow, pandas or polars object, or an iterable of these; a missing column
        gets its default or nulls. ``properties`` are added to the summary of the snapshot. A
        repeated call with the same ``commit`` publishes nothing again, even if ``data`` has
        changed.

        ``overwrite="table"`` replaces all rows, ``{"dt": "2024-01-01"}`` the rows of matching
        partitions, and ``col("ts") < "2024-01-02"`` the rows that meet a condition.
        ``"partitions"`` replaces each partition that gets new rows. Only whole files are removed:
        raise ``UnsupportedError`` if a file also has other rows. Raise ``InvalidRequestError`` for
        rows that do not fit the columns or the overwritten partitions.

        Raise ``CommitConflictError`` if other writers were first in each attempt. After any
        ``LakeError`` nothing was published and no file is left, except after
        ``CommitOutcomeUnknownError``: then repeat the call with the same ``commit``.
        """
        from lakeformat.iceberg.write.append import append

        if kinds is not None or options:
            self.require_arguments("write", kinds=kinds)
            self._require_options("write", self.write, options)
        if overwrite is None:
            return append(self._handle, data, commit=commit, properties=properties)
        from lakeformat.iceberg.write.overwrite import overwrite as replace_rows

        return replace_rows(self._handle, data, overwrite, commit=commit, properties=properties)

    def new_writer(
        self, *, overwrite: RowsToOverwrite | None = None, upsert_by: Sequence[str] | None = None
    ) -> PreparedWriter:
        """Return a writer whose messages are committed later, in this process or in another one.

        For a commit with ``overwrite``, pass the same ``overwrite`` here. ``upsert_by`` names the
        columns of a key: the commit then replaces the stored rows with the same key. Write all rows
        of a key with the same writer. To delete rows, too, pass ``kinds`` to ``write`` of the
        writer; rows with kinds are in memory until ``prepare``. Raise ``InvalidRequestError`` for a
        wrong ``overwrite`` or key, or if both are given.
        """
        from lakeformat.iceberg.write.overwrite import check_overwritten
        from lakeformat.iceberg.write.prepared_writer import PreparedWriter

        if upsert_by is not None:
            from lakeformat.iceberg.row_changes.upsert_writer import UpsertWriter

            _refuse_both(overwrite)
            return UpsertWriter(self._handle, upsert_by)
        if overwrite is not None:
            check_overwritten(self._handle.load().metadata, overwrite)
        return PreparedWriter(self._handle)

    def commit(
        self,
        messages: Iterable[IcebergCommitMessage],
        *,
        overwrite: RowsToOverwrite | None = None,
        upsert_by: Sequence[str] | None = None,
        executor: str | Executor | None = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> WriteReport:
        """Publish prepared files, as ``write`` does; commit each message only once.

        ``upsert_by`` names the columns of a key: the new rows then replace the stored rows with the
        same key, as in ``upsert``. Messages of a writer with ``upsert_by`` contain the key. Of
        the new rows only the keys are read, in parts that fit into memory. ``executor`` searches
        the stored rows: ``"threads"`` (the default), ``"serial"``, or an object such as
        ``SparkExecutor``. In version 3 all new rows get new row ids.

        Raise ``InvalidRequestError`` if a message belongs to another table, or names a file that is
        outside of the directory of data files, missing, or already published. Raise
        ``CommitConflictError`` if other writers were first in each attempt. After an error the
        files are kept: commit the same messages again, or pass them to ``abort``.
        """
        from lakeformat.iceberg.write.commit_prepared import commit_messages
        from lakeformat.iceberg.write.message import check_messages, key_of_messages

        self._require_options("write", self.commit, options)
        checked = check_messages(messages)
        upsert_by = _one_key(upsert_by, key_of_messages(checked))
        if upsert_by is None:
            if executor is not None:
                raise InvalidRequestError(
                    "executor has an effect only with upsert_by: leave it out"
                )
            return commit_messages(
                self._handle, checked, overwrite, commit=commit, properties=properties
            )
        _refuse_both(overwrite)
        from lakeformat.iceberg.row_changes.prepared_upsert import upsert_messages

        return upsert_messages(
            self._handle,
            checked,
            upsert_by,
            executor=executor,
            commit=commit,
            properties=properties,
        )

    def abort(self, messages: Iterable[IcebergCommitMessage]) -> list[str]:
        """Delete the files of messages that will not be committed.

        Return the URIs of files that could not be deleted. Raise ``InvalidRequestError`` if a
        snapshot has one of the files; then no file is deleted. Call ``abort`` only if no commit of
        these messages is in progress. After ``CommitOutcomeUnknownError`` first repeat the commit.
        """
        from lakeformat.iceberg.write.commit_prepared import abort_messages
        from lakeformat.iceberg.write.message import check_messages

        return abort_messages(self._handle, check_messages(messages))

    def read_message(self, content: bytes) -> IcebergCommitMessage:
        """Return the message that ``to_bytes`` has encoded.

        Raise ``InvalidRequestError`` for other bytes.
        """
        from lakeformat.iceberg.write.message import IcebergCommitMessage

        return IcebergCommitMessage.from_bytes(content)

    @property
    def staged(self) -> TableStaged:
        """The staged results of the table: written but not yet published."""
        from lakeformat.iceberg.staged.table_staged import TableStaged

        return TableStaged(self._handle)

    def find_commit(self, commit: CommitId) -> WriteReport | None:
        """Return the report of an earlier commit to this branch; None if it is not published.

        Raise ``CommitUndecidableError`` if the commit may have been one of the snapshots that have
        expired since its first attempt. Raise ``InvalidRequestError`` if the commit is not
        published, but the same user has published a commit with a higher identifier.
        """
        from lakeformat.iceberg.write.append import earlier_commit
        from lakeformat.iceberg.write.report import write_report

        found = earlier_commit(self._handle, self._handle.load(), commit)
        return None if found is None else write_report(self.location, found)

    def stream_batch(
        self, commit: CommitId, *, checkpoint: str | None = None
    ) -> AbstractContextManager[CommitId | None]:
        """Publish one batch of a stream exactly once, even if it is repeated much later.

        In ``with table.stream_batch(CommitId("my-stream", 7)) as commit``, ``commit`` is None if
        the batch is already published. Otherwise use ``commit`` for the commit of the batch. When
        the block ends without an exception, the batch is recorded as published. From the start of
        the block until the batch is recorded, a consumer with the name of the stream keeps the
        snapshots from expiring. The identifiers of batches must ascend: raise
        ``InvalidRequestError`` for a batch that is not published, but older than the newest
        published batch. ``checkpoint`` is the id of the stream's checkpoint. Raise
        ``InvalidRequestError`` also if the batch was published with another checkpoint.
        """
        from lakeformat.iceberg.table.batches import stream_table
        from lakeformat.tables.batch_log import stream_batch

        return stream_batch(stream_table(self._handle, self.find_commit), commit, checkpoint)

    def find_run(self, user: str) -> RunRecord | None:
        """Return the record of the last success of a run, by its commit user; None if there is no
        record.
        """
        return self.runs.read(user)

    def record_run(self, record: RunRecord) -> None:
        """Record the success of a run in the table's directory; a record is kept for 90 days."""
        self.runs.write(record, self._handle.environment)

    @property
    def runs(self) -> RunRecords:
        """The records of runs in the table's directory."""
        from lakeformat.iceberg.table.batches import run_records

        return run_records(self._handle)

    def truncate(self, *, commit: CommitId | None = None) -> WriteReport:
        """Delete all rows of the branch; earlier snapshots keep them until they expire."""
        from lakeformat.iceberg.write.overwrite import delete_partitions

        return delete_partitions(self._handle, None, commit=commit)

    def drop_partitions(
        self, partitions: Iterable[PartitionSpec], *, commit: CommitId | None = None
    ) -> WriteReport:
        """Delete the rows of partitions in one commit.

        Each partition is a dict with values of some or all partition columns without a transform.
        Only whole files are removed. Raise ``InvalidRequestError`` for any other column or an empty
        list, and ``UnsupportedError`` if a file also has other rows.
        """
        from lakeformat.iceberg.write.overwrite import delete_partitions
        from lakeformat.tables.arguments import partitions_to_drop

        return delete_partitions(self._handle, partitions_to_drop(partitions), commit=commit)


def _one_key(given: Sequence[str] | None, written: Sequence[str] | None) -> Sequence[str] | None:
    """Return the columns of the key of an upsert; None if the commit is no upsert.

    Raise ``InvalidRequestError`` if the messages were written with another key.
    """
    if given is not None and written is not None and [*given] != [*written]:
        raise InvalidRequestError(
            f"upsert_by is {given!r}, but these messages were written with "
            f"upsert_by={[*written]!r}: leave upsert_by out"
        )
    return written if given is None else given


def _refuse_both(overwrite: object) -> None:
    if overwrite is not None:
        raise InvalidRequestError(
            "upsert_by and overwrite exclude each other: leave one of them out"
        )
