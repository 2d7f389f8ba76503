# SPDX-License-Identifier: Apache-2.0
"""One attempt of a DELETE or UPDATE: the search for the rows, their replacement and the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.commit.commit import CommitOptions, commit_messages
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.written_files import delete_written
from lakeformat.paimon.compact.newest_schema import newest_schema
from lakeformat.paimon.handle import TableHandle, require_writable
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import READ_SNAPSHOT, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.read.where import row_filter
from lakeformat.paimon.row_changes.append_files import take_out_rows
from lakeformat.paimon.row_changes.find import Found, find_rows
from lakeformat.paimon.row_changes.keyed import (
    find_keyed_rows,
    require_deletable,
    require_sequences,
    require_updatable,
    unchanged_rows,
    write_keyed_rows,
)
from lakeformat.paimon.row_changes.own_rows import OwnRowsWriter
from lakeformat.paimon.row_changes.plan import ChangeUnit, plan_units
from lakeformat.paimon.row_changes.request import (
    RowChangeRequest,
    method_of,
    replayed,
)
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.transaction_order.changes_since import (
    ChangesSince,
    changes_since,
    read_base,
    touched_by,
)
from lakeformat.paimon.write.input_columns import InputColumns
from lakeformat.rows.assignments import Assignments, NewValues, bind_assignments
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.tables.compact_progress import CompactProgress
from lakeformat.tables.driver import Round
from lakeformat.tables.kept_files import kept_if_published
from lakeformat.tables.row_change_report import Method, RowChangeReport, RowOperation
from lakeformat.types.count_text import counted

__all__ = ["ChangeAttempt", "FoundRows"]

FoundRows: TypeAlias = tuple[ChangeUnit, list[Found]]
"""The files of a bucket, and the rows in each of them that meet the condition."""


@dataclass(slots=True)
class ChangeAttempt:
    """One attempt of a DELETE or UPDATE, on the snapshot and schema that were the newest when it
    began.
    """

    handle: TableHandle
    request: RowChangeRequest
    snapshot: Snapshot | None
    where: PredicateFilter | None
    assignments: Assignments | None
    changes: ChangesSince | None = None
    """The changes since the snapshot ``request.read``; None if the request names no snapshot.
    """
    result: RowChangeReport | None = None
    _units: Sequence[ChangeUnit] = ()
    _found: list[FoundRows] = field(default_factory=list)
    _done: int = 0
    _bytes_done: int = 0
    _files_read: int = 0

    @classmethod
    def on_newest(cls, handle: TableHandle, request: RowChangeRequest) -> ChangeAttempt:
        snapshot = latest_snapshot(handle.storage, handle.layout)
        # the schema is read after the snapshot, so no file has a newer schema
        handle = newest_schema(handle)
        require_writable(handle)
        if handle.options.data_evolution_enabled:
            raise UnsupportedError(
                f"{handle.uri} sets 'data-evolution.enabled', and this version does not "
                f"{request.operation} rows of such tables: use another engine, such as Spark "
                "(MERGE INTO)"
            )
        if handle.options.row_tracking_enabled:
            raise UnsupportedError(
                f"{handle.uri} tracks row ids ('row-tracking.enabled'), which this version would "
                f"lose: {request.operation} its rows with another engine"
            )
        where = row_filter(handle.schema, request.where, None)
        assignments = None
        if request.operation is RowOperation.UPDATE:
            assignments = _bound(handle.schema, request.new_values)
        if handle.schema.primary_keys and assignments is None:
            require_deletable(handle)
        elif handle.schema.primary_keys and assignments is not None:
            require_updatable(handle, assignments)
        changes = None
        if request.read is not None:
            changes = changes_since(handle, read_base(handle, *request.read, snapshot), snapshot)
        return cls(handle, request, snapshot, where, assignments, changes)

    def plan(self) -> Round[ChangeUnit, FoundRows] | None:
        """Return a round with the files to search.

        For a primary-key table the round is empty, because a scan finds the rows. Return None if
        there is nothing to do: the table has no snapshot, and a change without rows need not be
        recorded (``_is_recorded`` is False).
        """
        if self.snapshot is None and not self._is_recorded:
            return None
        if self.snapshot is not None and not self.handle.schema.primary_keys:
            self._units = plan_units(self.handle, self.snapshot, self.where)
            self._files_read = sum(len(unit.files) for unit in self._units)
            self._report_progress()
        return Round(units=self._units, work=self.find)

    def find(self, unit: ChangeUnit) -> FoundRows:
        return unit, find_rows(self.handle, unit)

    def take(self, unit: ChangeUnit, there: list[Found]) -> None:
        """Record the rows that were found in the files of one bucket."""
        if there:
            self._found.append((unit, there))
        self._done += 1
        self._bytes_done += unit.bytes
        self._report_progress()

    def write_and_commit(self) -> None:
        """Write and commit the change, and set ``result``; a dry run only sets ``result``.

        If the commit is refused, delete every file of this attempt.
        """
        if self.snapshot is None:
            self.result = self.report(rows=0, committed=self._record())
        elif self.handle.schema.primary_keys:
            self.result = self._by_key(self.snapshot)
        elif self.request.dry_run or not self._found:
            self.result = self._of_files(self._found, [], self._record())
        else:
            messages = self._take_out(self._found)
            self.result = self._of_files(self._found, messages, self._commit(messages, None))

    def _take_out(self, found: Sequence[FoundRows]) -> list[CommitMessage]:
        """Delete the found rows, and write them with their new values for an UPDATE.

        Return the messages to commit. If this fails, no new file remains.
        """
        messages: list[CommitMessage] = []
        writer = None if self.assignments is None else OwnRowsWriter(self.handle)
        take = None if writer is None else self._into(writer)
        try:
            for unit, there in found:
                messages.append(take_out_rows(self.handle, unit, there, take))
            return messages if writer is None else messages + writer.prepare()
        except BaseException:
            if writer is not None:
                writer.abort()
            delete_written(self.handle, messages)
            raise

    def _into(self, writer: OwnRowsWriter) -> Callable[[pa.RecordBatch], None]:
        assignments = self.assignments
        assert assignments is not None
        return lambda rows: writer.write(assignments(rows))

    def _by_key(self, snapshot: Snapshot) -> RowChangeReport:
        searched, as_of = snapshot, None
        if self.changes is not None:
            if self.changes.base is None:
                return self.report(rows=0, committed=self._record())
            searched, as_of = self.changes.base, self.changes.as_of()
        scan = find_keyed_rows(self.handle, searched, self.where)
        if self.assignments is None:
            require_sequences(self.handle, scan)
        self._files_read = sum(len(split.files) for split in scan.splits())
        if self.request.dry_run:
            if as_of is None:
                return self.report(rows=scan.count())
            unchanged = unchanged_rows(scan, as_of)
            return self.report(rows=sum(batch.num_rows for batch in unchanged))
        rows, messages = write_keyed_rows(self.handle, scan, self.assignments, as_of)
        if not rows:
            return self.report(rows=0, committed=self._record())
        # The commit is refused if the partitions changed since: it would overwrite newer rows of
        # these keys.
        committed = self._commit(messages, snapshot)
        return self.report(rows=rows, messages=messages, committed=committed)

    @property
    def _is_recorded(self) -> bool:
        """True if a change that finds no row is committed, too, as an empty snapshot.

        Without this snapshot, a retry of the same commit would change rows that were added since.
        """
        return self.request.commit is not None and not self.request.dry_run

    def _record(self) -> CommitReport | None:
        """Commit an empty snapshot and return its report if a change without rows must be recorded.

        Return None if rows were found, or if ``_is_recorded`` is False.
        """
        if not self._is_recorded or self._found:
            return None
        return self._commit([], None)

    def _commit(self, messages: list[CommitMessage], read: Snapshot | None) -> CommitReport:
        request = self.request
        options = CommitOptions(
            commit=request.commit,
            operation=request.operation,
            read_snapshot=None if read is None else read.id,
            read_identity=None if read is None else read.identity,
            is_recorded=not messages,
            properties={} if request.read is None else {READ_SNAPSHOT: str(request.read[0])},
        )
        with kept_if_published(lambda: delete_written(self.handle, messages)):
            if self.changes is not None:
                self.changes.require_no_batch(touched_by(messages), request.commit)
            report = commit_messages(self.handle, messages, options)
        if report.replayed:  # another attempt with this identity was faster
            delete_written(self.handle, messages)
        return report

    def _of_files(
        self,
        found: Sequence[FoundRows],
        messages: list[CommitMessage],
        committed: CommitReport | None = None,
    ) -> RowChangeReport:
        each = [one for _, there in found for one in there]
        partly = sum(1 for one in each if one.left)
        marks = method_of(self.handle) is Method.VECTORS
        report = self.report(
            rows=sum(one.rows for one in each), messages=messages, committed=committed
        )
        return replace(
            report,
            files_marked=partly if marks else 0,
            files_rewritten=0 if marks else partly,
            files_removed=len(each) - partly,
        )

    def report(
        self,
        *,
        rows: int,
        messages: Sequence[CommitMessage] = (),
        committed: CommitReport | None = None,
    ) -> RowChangeReport:
        """Return the report of a finished change, or of a dry run."""
        handle, request = self.handle, self.request
        if committed is not None and committed.replayed and committed.snapshot_id is not None:
            return replayed(handle, request, committed.snapshot_id)
        new = [file for message in messages for file in message.new_files]
        return RowChangeReport(
            table=handle.uri,
            operation=request.operation,
            method=method_of(handle),
            dry_run=request.dry_run,
            read_snapshot_id=self._read_id,
            snapshot_id=None if committed is None else committed.snapshot_id,
            rows=rows,
            files_read=self._files_read,
            files_added=len(new),
            bytes_added=sum(file.file_size for file in new),
            reason=self._reason(rows, committed),
        )

    @property
    def _read_id(self) -> int | None:
        searched = self.snapshot if self.changes is None else self.changes.base
        return None if searched is None else searched.id

    def _reason(self, rows: int, committed: CommitReport | None) -> str:
        if committed is not None and not rows:
            return (
                f"no row meets the condition; snapshot {committed.snapshot_id} records the commit"
            )
        what = counted(rows, "row")
        done = "deleted" if self.assignments is None else "updated"
        if self.request.dry_run:
            return f"{what} would be {done}; nothing was changed"
        if committed is None:
            return "no row meets the condition, so no snapshot was made"
        return f"{what} {done}, {committed.reason}"

    def _report_progress(self) -> None:
        if self.request.on_progress is not None:
            self.request.on_progress(
                CompactProgress(
                    table=self.handle.uri,
                    units=len(self._units),
                    done=self._done,
                    bytes=sum(unit.bytes for unit in self._units),
                    bytes_done=self._bytes_done,
                )
            )


def _bound(schema: TableSchema, new_values: NewValues | None) -> Assignments:
    def conform(names: Sequence[str]) -> InputColumns:
        return InputColumns(
            tuple(each for name in names for each in schema.fields if each.name == name)
        )

    return bind_assignments(schema.fields, new_values, conform)
