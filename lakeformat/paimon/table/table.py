# SPDX-License-Identifier: Apache-2.0
"""The class ``Table``: every method calls the package that does the work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never, NoReturn, TypeVar
from warnings import warn

from lakeformat.environment import Environment
from lakeformat.errors import (
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout
from lakeformat.paimon.metadata.branch_directory import check_branch_name, require_branch
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.table.checks import TableChecks
from lakeformat.paimon.table.expiry import TableExpiry
from lakeformat.paimon.table.orphans import TableOrphans
from lakeformat.paimon.table.partitions import TablePartitions
from lakeformat.paimon.table.reads import TableReads
from lakeformat.paimon.table.references import TableReferences
from lakeformat.paimon.table.row_changes import TableRowChanges
from lakeformat.paimon.table.upkeep import TableUpkeep
from lakeformat.storage import NO_ROOTS, ExternalRoots, Storage
from lakeformat.storage.links import within
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.table import OPERATIONS
from lakeformat.tables.table import Table as AnyTable

if TYPE_CHECKING:
    from lakeformat.paimon.commit.commit_report import CommitReport
    from lakeformat.paimon.metadata.commit_message import CommitMessage
    from lakeformat.paimon.read.scan import Scan
    from lakeformat.paimon.staged import TableStaged
    from lakeformat.paimon.system_tables import RowTable, SystemScan, SystemTableDeclaration
    from lakeformat.paimon.write.table_writer import TableWriter
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import (
        Conflict,
        Overwritten,
        Partitions,
        PartitionSpec,
        WindowEnd,
    )
    from lakeformat.tables.commit_observer import CommitObserver
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.results import Rows
    from lakeformat.tables.run_record import RunRecord, RunRecords

__all__ = ["ReadOnlyTable", "SystemTable", "Table", "load_table"]

_Shown = TypeVar("_Shown", bound="ReadOnlyTable")


def load_table(
    storage: Storage,
    layout: TableLayout,
    environment: Environment,
    external_roots: ExternalRoots = NO_ROOTS,
    observer: CommitObserver[TableHandle] | None = None,
) -> Table:
    """Return the table under ``layout``, with the newest schema of its branch.

    ``external_roots`` are the external paths that it may use; ``observer`` is called after each of
    its commits.
    """
    storage = within(storage, layout.root)
    if layout.branch != MAIN_BRANCH:
        check_branch_name(layout.branch)
        require_branch(storage, layout)
    schema_id = latest_schema_id(storage, layout)
    if schema_id is None:
        raise NotFoundError(
            f"{storage.uri(layout.root)} is not a table: it has no schema file; "
            "check the path, or create the table through a catalog"
        )
    schema = read_schema(storage, layout, schema_id)
    located = replace(layout, data_path=schema.table_options.data_file_path_directory)
    named = schema.table_options.text(TableOptions.data_file_external_paths)
    return Table(
        TableHandle(storage, located, schema, environment, external_roots, named, observer)
    )


class Table(
    TableChecks,
    TableUpkeep,
    TableExpiry,
    TableOrphans,
    TablePartitions,
    TableReferences,
    TableRowChanges,
    AnyTable,
):
    """One table.

    Its schema is fixed when the table is opened, but every call sees the newest snapshots.
    """

    format = "paimon"
    instead = MappingProxyType(
        {
            "analyze_partitions": "analyze(columns) counts rows and values of the whole table",
            "compact_deletes": "compact() removes the rows that deletion vectors hide",
            "plan_optimizing": "plan_compaction() shows what a compaction would do",
            "upsert": "write(rows) replaces rows by the primary key of the table",
        }
    )
    refused_arguments = MappingProxyType(
        {
            "compact": {
                "max_commits": "leave it out: finished buckets are published as they are done"
            }
        }
    )

    def __repr__(self) -> str:
        return f"<Table {self.location}>"

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
        """Add rows in one commit, or replace partitions; the same ``commit`` publishes only once.

        ``data`` is a pyarrow, pandas or polars object, or an iterable of those; missing columns get
        their default or nulls. With a primary key, a row is merged with the row of its key.
        ``kinds`` is the kind of each row: insert ('+I'), before and after an update ('-U', '+U'),
        or delete ('-D'), as one value per row or as the name of a column of ``data``. Other tables
        accept inserts only.

        ``overwrite="table"`` replaces all rows, ``{"dt": "2024-01-01"}`` those of some partitions
        and ``"partitions"`` those of the partitions that get rows. ``read_snapshot`` is the
        snapshot the rows were computed from, as a number, a position or its text: the commit is
        refused if these partitions have changed since. With dynamic buckets, the rows are written
        again if another writer has assigned buckets to keys meanwhile. If ``data`` is an iterator,
        which can be read only once, the commit is refused instead.

        ``conflict="transaction-order"`` keeps what other commits changed after ``read_snapshot``,
        instead of a refusal: the rows count as written at that snapshot, so a later row or delete
        of a key wins, and an overwrite deletes only older rows. It needs a primary key, the merge
        engine ``deduplicate``, and the snapshots since ``read_snapshot``. None: the table option
        ``write.conflict`` decides.

        If ``commit`` was published before, nothing is written and the rows are not compared. On an
        append table another number of rows is refused, if ``data`` shows it without being read.

        Rows of a primary-key table go to level 0, as with ``write-only``: where reads skip level 0
        (``first-row``, deletion vectors) they become visible by a compaction.

        If this raises a ``LakeError``, nothing was published and no file is left behind. The
        exception is ``CommitOutcomeUnknownError``: then repeat the call with the same ``commit``.
        """
        if unknown:
            from lakeformat.tables.unknown_arguments import refuse_unknown  # only for a message

            refuse_unknown(self.write, unknown)
        from lakeformat.paimon.table.writes import RowsWrite, commit_options, replacement

        is_in_order = False
        if conflict is not None or read_snapshot is not None:
            from lakeformat.paimon.transaction_order.supported import is_transaction_order

            is_in_order = is_transaction_order(self._handle, conflict, read_snapshot)
        options = commit_options(self._handle, commit, watermark, properties, read_snapshot)
        replaced = replacement(self._handle, overwrite)
        return RowsWrite(self._handle, data, kinds, options, replaced, is_in_order).run()

    def new_writer(self, *, overwrite: Overwritten | None = None) -> TableWriter:
        """Return a writer whose messages are committed later, here or in another process.

        For a commit with ``overwrite``, create the writer with the same ``overwrite``. In a table
        with buckets, write each bucket with only one writer at a time. Independent writers assign
        the same sequence numbers, so it is undefined which of two rows with one key is newer.
        """
        from lakeformat.paimon.table.writes import new_writer, replacement

        replaced = replacement(self._handle, overwrite)
        return new_writer(self._handle, replaced, is_committed_here=False)

    def commit(
        self,
        messages: Iterable[CommitMessage],
        *,
        overwrite: Overwritten | None = None,
        commit: CommitId | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        read_snapshot: AnyPosition | str | None = None,
        **unknown: Never,
    ) -> CommitReport:
        """Publish prepared files, as ``write`` does; commit each message only once.

        Compacted files become a separate snapshot after the one of new rows. An ``overwrite`` also
        deletes rows added after the messages were prepared. To refuse it in that case, pass the
        snapshot they were computed from as ``read_snapshot``.
        """
        if unknown:
            from lakeformat.tables.unknown_arguments import refuse_unknown  # only for a message

            refuse_unknown(self.commit, unknown)
        from lakeformat.paimon.metadata.commit_message import check_messages
        from lakeformat.paimon.table.writes import commit_options, commit_prepared, replacement

        messages = check_messages(messages)
        options = commit_options(self._handle, commit, watermark, properties, read_snapshot)
        return commit_prepared(
            self._handle, messages, options, replacement(self._handle, overwrite)
        )

    def abort(self, messages: Iterable[CommitMessage]) -> list[str]:
        """Remove the files of messages that will not be committed.

        Return the URIs of files that could not be removed. Raise InvalidRequestError if the table
        refers to one of the files, or none of them exists. Call it only when no commit of them is
        in progress: not right after ``CommitOutcomeUnknownError``.
        """
        from lakeformat.paimon.commit.abort import abort_messages
        from lakeformat.paimon.metadata.commit_message import check_messages

        return abort_messages(self._handle, check_messages(messages))

    def read_message(self, content: bytes) -> CommitMessage:
        """Return the message that ``CommitMessage.to_bytes`` has encoded."""
        from lakeformat.paimon.metadata.commit_message import CommitMessage

        return CommitMessage.from_bytes(content)

    def find_commit(self, commit: CommitId) -> CommitReport | None:
        """Return the result of an earlier commit with this identity, of any kind; None if there is
        none.
        """
        from lakeformat.paimon.commit.earlier_result import find_commit

        return find_commit(self._handle, commit)

    def stream_batch(self, commit: CommitId) -> AbstractContextManager[CommitId | None]:
        """Commit one batch of a stream exactly once, however late it is repeated.

        ``with table.stream_batch(CommitId("my-stream", 7)) as commit``: ``commit`` is None if the
        batch is already published; otherwise commit with it. Leaving the block without an exception
        marks the batch as published. Batches follow each other with ascending identifiers. While
        the block runs, a consumer with the stream's name keeps the snapshots.
        """
        from lakeformat.paimon.table.batches import stream_table
        from lakeformat.tables.batch_log import stream_batch

        return stream_batch(stream_table(self._handle), commit)

    def begin(self) -> AbstractContextManager[Position]:
        """Keep the newest snapshot and all later ones while a batch runs.

        ``with table.begin() as position``: read the table at ``position``, and write the batch with
        ``read_snapshot=position``. While the block runs, a consumer ``batch-<id>`` keeps the
        snapshots. If the process dies in it, the consumer remains: delete it, or set the table
        option ``consumer.expiration-time``.
        """
        from lakeformat.paimon.table.batches import begin

        return begin(self._handle)

    def remembered(self, commit: CommitId) -> AbstractContextManager[CommitId | None]:
        """The old name of ``stream_batch``, which does the same."""
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

    def find_run(self, user: str) -> RunRecord | None:
        """Return the record of the last success of a run, by its commit user; None if there is
        none.
        """
        return self.runs.read(user)

    def record_run(self, record: RunRecord) -> None:
        """Record the success of a run in the table's directory; records are kept for 90 days."""
        self.runs.write(record, self._handle.environment)

    def truncate(
        self, *, commit: CommitId | None = None, read_snapshot: AnyPosition | str | None = None
    ) -> CommitReport:
        """Delete all rows; earlier snapshots keep them until they expire."""
        return self._delete([{}], commit, read_snapshot)

    def drop_partitions(
        self,
        partitions: Iterable[PartitionSpec],
        *,
        commit: CommitId | None = None,
        read_snapshot: AnyPosition | str | None = None,
    ) -> CommitReport:
        """Delete the rows of partitions, each named by the values of some partition columns."""
        from lakeformat.tables.arguments import partitions_to_drop

        return self._delete(partitions_to_drop(partitions), commit, read_snapshot)

    def system_table(self, name: str) -> ReadOnlyTable:
        """Return a system table: metadata such as ``"files"``, or rows such as ``"ro"``."""
        from lakeformat.paimon.system_tables import find_row_table, find_system_table

        rows = find_row_table(name)
        if rows is not None:
            return RowSystemTable(self._handle, rows)
        return SystemTable(self._handle, find_system_table(name))

    @property
    def system_tables(self) -> Sequence[str]:
        """The names of the system tables with metadata."""
        from lakeformat.paimon.system_tables import system_table_names

        return system_table_names()

    @property
    def runs(self) -> RunRecords:
        """The records of runs in the table's directory."""
        from lakeformat.tables.run_record import RunRecords

        return RunRecords(self._handle.storage, self._handle.layout.run_directory)

    def _delete(
        self,
        partitions: Collection[PartitionSpec],
        commit: CommitId | None,
        read_snapshot: AnyPosition | str | None,
    ) -> CommitReport:
        from lakeformat.paimon.table.writes import delete_partitions

        return delete_partitions(self._handle, partitions, commit, read_snapshot)


def _only_reads(shown: type[_Shown]) -> type[_Shown]:
    """Replace the methods that change a table by refusals, including methods added to ``Table``
    later.
    """
    rows_of_its_own = {"changes", "stream", "state_scan"}
    readable = ({*dir(TableReads)} | {*dir(AnyTable)} - OPERATIONS) - rows_of_its_own
    for name in dir(Table):
        if not name.startswith("_") and name not in readable:
            setattr(shown, name, _refusal(getattr(Table, name)))
    return shown


def _refusal(member: object) -> object:
    def refuse(self: ReadOnlyTable, *_: Any, **__: Any) -> NoReturn:
        """Raise UnsupportedError: only the table behind a system table can be changed."""
        raise UnsupportedError(
            f"${self._name} of {self.location} is a system table, which is read-only: use the "
            "table itself"
        )

    return property(refuse) if isinstance(member, property) else refuse


@_only_reads
class ReadOnlyTable(Table):
    """A read-only table that shows data of another table."""

    def __init__(self, handle: TableHandle, name: str) -> None:
        super().__init__(handle)
        self._name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}${self._name}>"

    @property
    def operations(self) -> frozenset[str]:
        """The operations that a read-only table supports."""
        return frozenset({"scan"})


class SystemTable(ReadOnlyTable):
    """A table's metadata as rows, such as ``shop.orders$files``; read-only."""

    shows_metadata = True

    def __init__(self, handle: TableHandle, declaration: SystemTableDeclaration[Any]) -> None:
        super().__init__(handle, declaration.name)
        self._declaration = declaration

    @property
    def schema(self) -> TableSchema:
        """The columns of the metadata."""
        return self._declaration.schema

    # This scan has fewer arguments and results: for example, it has no splits.
    def scan(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        newest: bool = False,
    ) -> SystemScan:
        """Return a scan of the current metadata or, if it depends on a snapshot, of the chosen
        snapshot's.
        """
        from lakeformat.paimon.read.shown_state import find_shown_state
        from lakeformat.paimon.read.time_travel import find_snapshot
        from lakeformat.paimon.system_tables import Source, SystemScan

        chosen = find_snapshot(
            self._handle, snapshot=snapshot, tag=tag, as_of=as_of, watermark=watermark
        )
        if chosen is None and self._declaration.of_snapshot and not newest:
            state = find_shown_state(self._handle)
            chosen = None if state is None else state.snapshot
        if chosen is not None and not self._declaration.of_snapshot:
            raise InvalidRequestError(
                f"${self._declaration.name} shows the current state only: remove snapshot, tag, "
                "as_of and watermark"
            )
        return SystemScan(self._declaration, Source(self._handle, chosen), columns)


class RowSystemTable(ReadOnlyTable):
    """Another view of a table's rows, such as ``shop.orders$audit_log``; read-only."""

    def __init__(self, handle: TableHandle, declaration: RowTable) -> None:
        super().__init__(handle, declaration.name)
        self._rows = declaration

    @property
    def schema(self) -> TableSchema:
        """The columns of the rows."""
        return self._rows.schema(self._handle.schema)

    def scan(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        snapshot: AnyPosition | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        newest: bool = False,
        limit: int | None = None,
    ) -> Scan | Rows:
        """Return a scan of this view of a snapshot's rows; the arguments are those of
        ``Table.scan``.
        """
        from lakeformat.paimon.system_tables import RowSelection
        from lakeformat.tables.scan_arguments import check_limit

        handle, state = self._state(snapshot, tag, as_of, watermark, newest=newest)
        if state.created_from_millis is not None:
            raise UnsupportedError(
                f"{self.location} sets {state.decided_by}, which skips older files, but "
                f"${self._rows.name} needs all files: pass a snapshot, or newest=True"
            )
        asked = RowSelection(columns, where, partitions, check_limit(limit))
        return self._rows.scan(handle, state.snapshot, asked)

    def changes(  # type: ignore[override]
        self,
        after: WindowEnd,
        upto: WindowEnd | None = None,
        mode: str = "auto",
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
    ) -> Rows:
        """Return this view of the changes between two snapshots; the arguments are those of
        ``Table.changes``.
        """
        from lakeformat.paimon.read.changes.window import find_window
        from lakeformat.paimon.system_tables import RowSelection

        if self._rows.changes is None:
            raise UnsupportedError(
                f"${self._rows.name} of {self.location} has no changes: read those of the table "
                "itself"
            )
        window = find_window(self._handle, after, upto, mode)
        return self._rows.changes(self._handle, window, RowSelection(columns, where, partitions))
