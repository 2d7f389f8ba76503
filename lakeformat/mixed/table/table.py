# SPDX-License-Identifier: Apache-2.0
"""The public class of a Mixed table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.mixed.stores.properties import BASE, CHANGE
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.mixed.table.mixed_history import MixedHistory, MixedSnapshot, mixed_history
from lakeformat.mixed.table.not_here import NOT_HERE, REFUSED_ARGUMENTS
from lakeformat.mixed.table.read_only import read_only_store
from lakeformat.mixed.table.table_batches import TableBatches
from lakeformat.mixed.table.table_following import TableFollowing
from lakeformat.mixed.table.table_prepared import TablePrepared
from lakeformat.tables.listed_history import ListedHistory
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.table import refuse_operation

if TYPE_CHECKING:
    from lakeformat.mixed.read.scan import MixedScan
    from lakeformat.mixed.table.system_table import MixedSystemTable
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Conflict, Overwritten, Partitions
    from lakeformat.tables.checks import CheckRequest
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.row_checks.check_report import CheckReport
    from lakeformat.tables.run_record import RunRecord, RunRecords
    from lakeformat.tables.wanted_table import WantedTable
    from lakeformat.tables.write_report import WriteReport

__all__ = ["MixedTable"]


class MixedTable(TableBatches, TableFollowing, TablePrepared, ListedHistory[MixedSnapshot]):
    """A Mixed table: two Iceberg tables that are read as one; every call uses their newest
    metadata.
    """

    format = "mixed"
    cloned_into = "iceberg"
    numbers_snapshots = False
    instead = MappingProxyType({**NOT_HERE})
    refused_arguments = MappingProxyType({**REFUSED_ARGUMENTS})
    is_skipped_by_arguments = True

    def __repr__(self) -> str:
        return f"<MixedTable {self.location}>"

    @property
    def location(self) -> str:
        """The URI of the base store, which is also the URI of the table."""
        return self._pair.base.uri

    @property
    def branch(self) -> str:
        """The name of the branch that is read and written."""
        return self._pair.base.branch

    @property
    def identity(self) -> str:
        """A text that differs if the table is dropped and created again under its name.

        It is "" if the table has no uuid, as is possible in version 1 of the Iceberg format.
        """
        return self._pair.base.load().metadata.table_uuid or ""

    @property
    def locations(self) -> list[str]:
        """The URIs of the base store and of the change store."""
        return [self.base.location, self.change.location]

    @property
    def schema(self) -> Schema:
        """The current columns."""
        return self._loaded().base.metadata.schema

    @property
    def schema_id(self) -> int:
        """The id of the current schema."""
        return self.schema.schema_id

    @property
    def has_unique_keys(self) -> bool:
        return True

    @property
    def replaces_repeated_rows(self) -> bool:
        from lakeformat.mixed.stores.version_field import rows_replace

        return rows_replace(self._loaded().base.metadata.properties)

    @property
    def primary_key(self) -> list[str]:
        """The names of the key columns."""
        return [each.name for each in self._loaded().key]

    @property
    def key_columns(self) -> list[str]:
        """The names of the key columns."""
        return self.primary_key

    @property
    def why_changes_delete(self) -> str:
        """The reason why changes of the table may delete rows, as a clause for messages."""
        return "has a primary key"

    def contradictions(self, wanted: WantedTable) -> list[str]:
        """Return one text for each difference between this table and ``wanted``; empty if none."""
        from lakeformat.iceberg.create.contradictions import contradictions

        return contradictions(self._loaded().base.metadata, self.primary_key, wanted)

    @property
    def format_version(self) -> int:
        """The version of the Iceberg format of the base store."""
        return self._loaded().base.metadata.format_version

    @property
    def partition_by(self) -> list[str]:
        """The columns and transforms by which new files of both stores are partitioned."""
        return self.base.partition_by

    @property
    def unique_within(self) -> list[str]:
        """The partition columns; a key can have one row in each partition."""
        from lakeformat.mixed.write.changes import partition_columns

        return partition_columns(self._loaded().change.metadata)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties of the base store."""
        return self._loaded().base.metadata.properties

    @property
    def base(self) -> IcebergTable:
        """The base store, without changes that are not merged yet, as a read-only Iceberg table."""
        return read_only_store(self._pair.base, BASE)

    @property
    def change(self) -> IcebergTable:
        """The change store: inserted and deleted rows, as a read-only Iceberg table."""
        return read_only_store(replace(self._pair.base, pointer=self._pair.change), CHANGE)

    # ------------------------------------------------------------------ history

    def position(self, named: Any = None) -> Position:
        """Return the newest position, or that of ``named``: a stored position or a snapshot id.

        A position has the sequence numbers of the change store and of the base store.
        """
        history = self._history()
        return history.head if named is None else history.parse(named)

    def snapshot_id_at(self, position: Position) -> int:
        """Return the id of the newest snapshot, of either store, up to a position; 0 if none."""
        history = self._history()
        upto = history.between(history.beginning, position)
        return upto[-1].snapshot_id if upto else 0

    def position_before(self, position: Position) -> Position:
        """Return the position right before the newest commit that ``position`` includes.

        If no snapshot before this commit is left, return the position before the oldest snapshot.
        """
        history = self._history()
        earlier = [each.position for each in history.snapshots if each.position < position]
        return earlier[-1] if earlier else history.oldest

    def positions(
        self, *, after: AnyPosition | None = None, upto: AnyPosition | None = None, limit: int
    ) -> list[Position]:
        """Return the newest positions, at most ``limit``, that a scan can read, oldest first.

        The positions are after ``after`` and up to ``upto``. ``after=None`` means the beginning,
        and ``upto=None`` the newest position.
        """
        history = self._history()
        found = history.between(history.beginning if after is None else after, upto)
        readable = [each.position for each in found if each.is_readable]
        return readable[-limit:] if limit > 0 else []

    # ------------------------------------------------------------------ rows

    def scan(
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
    ) -> MixedScan:
        """Scan the merged rows of both stores, at their newest snapshots or at a chosen state.

        A delete of a key removes the rows of the key with a smaller transaction, or with the same
        transaction and a smaller offset. In a table with a version field, versions are compared
        first. ``where`` is a SQL condition, or a condition made with ``lake.col``. Files of both
        stores without matching rows are skipped. If ``where`` names values of all key columns,
        files of other nodes are skipped, too.

        ``snapshot`` is a position, or the id of a snapshot of either store; ``newest`` has no
        effect. Raise ``NotFoundError`` if the chosen state has expired or never existed,
        ``InvalidRequestError`` if both ``snapshot`` and ``as_of`` are given, and
        ``UnsupportedError`` for a ``tag`` or a ``watermark``.
        """
        from lakeformat.iceberg.read.where import row_filter
        from lakeformat.mixed.read.scan import MixedScan
        from lakeformat.mixed.table.find_state import find_state
        from lakeformat.tables.scan_arguments import check_limit

        for name, value in (("tag", tag), ("watermark", watermark)):
            if value is not None:
                raise UnsupportedError(
                    f"{self.location} is a Mixed table, which has no {name}s: choose a state "
                    "with snapshot= or as_of="
                )
        if snapshot is not None and as_of is not None:
            raise InvalidRequestError("pass either snapshot or as_of: each chooses a state")
        pair = self._loaded()
        state = find_state(pair, mixed_history(pair), snapshot=snapshot, as_of=as_of)
        asked = row_filter(state.base.metadata, state.schema, where, partitions)
        return MixedScan(state, columns, asked, check_limit(limit))

    def system_table(self, name: str) -> MixedSystemTable | IcebergTable:
        """Return a system table by its name.

        ``"snapshots"`` and ``"files"`` are about both stores; ``"base"`` and ``"change"`` are one
        store each, as a read-only Iceberg table. Raise ``NotFoundError`` for any other name.
        """
        from lakeformat.mixed.table.system_table import MixedSystemTable

        stores = {BASE: self.base, CHANGE: self.change}
        return stores.get(name) or MixedSystemTable(name, self._loaded)

    @property
    def system_tables(self) -> list[str]:
        """The names of the system tables."""
        from lakeformat.mixed.table.system_table import SYSTEM_TABLES

        return [*SYSTEM_TABLES, BASE, CHANGE]

    def write(
        self,
        data: Any,
        kinds: Any = None,
        *,
        commit: CommitId | None = None,
        overwrite: Overwritten | None = None,
        conflict: Conflict | None = None,
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> WriteReport:
        """Store rows in one commit of the change store; each row replaces the row of its key.

        ``kinds`` is the name of a column, or has one kind for each row: ``+I`` and ``+U`` store the
        row, ``-U`` and ``-D`` delete the row of its key. Rows are applied in their order, so the
        last row of a key counts; in a table with a version field, the row with the largest version
        counts. Rows of a key are replaced within their partition. If the table property
        ``write.upsert.enabled`` is false, a new row replaces none: a second row of a key is then a
        duplicate.

        With ``overwrite`` a batch replaces whole partitions of the base store by the rows. Then
        ``kinds`` must be None, and changes that are committed in the meantime remain. With
        ``conflict="transaction-order"`` a batch writes the rows to the change store; it begins
        before ``data`` is read. With either argument, ``write`` raises ``LockUnavailableError``
        while another batch runs. For batches, see ``begin``.

        A repeated call with the same ``commit`` publishes nothing again. If ``write`` raises a
        ``LakeError``, nothing was published and no file is left, except after
        ``CommitOutcomeUnknownError``: then repeat the call with the same ``commit``.
        """
        from lakeformat.mixed.write.write_changes import write_changes

        self._require_options("write", self.write, options)
        if overwrite is not None or conflict is not None:
            return self._by_batch(data, kinds, overwrite, conflict, commit, properties)
        return write_changes(self._pair, data, kinds, commit=commit, properties=properties)

    def upsert(
        self,
        data: Any,
        by: Sequence[str] | None = None,
        *,
        kinds: Any = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> WriteReport:
        """Store rows as ``write`` does, and always replace the rows of their keys.

        The table property ``write.upsert.enabled`` has no effect. ``by`` must be the key of the
        table; otherwise raise ``InvalidRequestError``.
        """
        from lakeformat.mixed.write.write_changes import write_changes

        if by is not None:
            self._require_key("by", by)
        return write_changes(
            self._pair, data, kinds, replaces=True, commit=commit, properties=properties
        )

    def find_commit(self, commit: CommitId) -> WriteReport | None:
        """Return the report of an earlier write with this identity; None if it is not found.

        Raise ``CommitUndecidableError`` if it is not found and snapshots since its first attempt
        have expired. Raise ``InvalidRequestError`` if only a commit of the same user with a
        higher identifier is found.
        """
        from lakeformat.mixed.batch.batch import find_write

        return find_write(self._pair, commit)

    def stream_batch(
        self, commit: CommitId, *, checkpoint: str | None = None
    ) -> AbstractContextManager[CommitId | None]:
        """Publish one batch of a stream exactly once, even if it is repeated much later.

        In ``with table.stream_batch(CommitId("my-stream", 7)) as commit``, ``commit`` is None if
        the batch is already published. Otherwise write with ``commit``. The record of the newest
        batch is in the directory of the change store. ``checkpoint`` is the id of the stream's
        checkpoint. Raise ``InvalidRequestError`` if the batch was published with another
        checkpoint, or if it is older than the newest batch and was not published.
        """
        from lakeformat.iceberg.table.batches import stream_table
        from lakeformat.mixed.write.write_changes import change_handle
        from lakeformat.tables.batch_log import stream_batch

        change = change_handle(self._pair)
        base, find = self._pair.base, self.find_commit
        notes = stream_table(change, find, base)
        notes = replace(notes, adopted=lambda: stream_table(base, find, change))
        return stream_batch(notes, commit, checkpoint)

    def find_run(self, user: str) -> RunRecord | None:
        """Return the record of the last success of the run with this commit user; None if there is
        no record.
        """
        return self.runs.read(user)

    def record_run(self, record: RunRecord) -> None:
        """Record the success of a run in the directory of the change store, for 90 days."""
        self.runs.write(record, self._pair.base.environment)

    @property
    def runs(self) -> RunRecords:
        """The records of runs in the directory of the change store.

        Records from before the table was adopted are read, too.
        """
        from lakeformat.iceberg.table.batches import run_records
        from lakeformat.mixed.write.write_changes import change_handle

        change, base = change_handle(self._pair), self._pair.base
        return replace(run_records(change, base), adopted=lambda: run_records(base, change))

    def _check(self, request: CheckRequest) -> CheckReport:
        from lakeformat.mixed.read.checked_rows import check_rows
        from lakeformat.mixed.table.find_state import find_state

        if request.staged is not None:
            raise UnsupportedError(
                f"{self.location} is a Mixed table, which has no staged results: leave out "
                "'staged' to check the published rows"
            )
        pair = self._loaded()
        return check_rows(
            find_state(pair, mixed_history(pair)),
            request,
            self._pair.base.environment.now_millis(),
        )

    def __getattr__(self, name: str) -> Any:
        """Raise ``UnsupportedError``, with advice, for an operation that only other formats have.

        Raise ``AttributeError`` for any other name.
        """
        if not name.startswith("_") and (name in self.instead or hasattr(IcebergTable, name)):
            raise refuse_operation(self, name)
        raise AttributeError(f"a Mixed table has no attribute {name!r}", name=name, obj=self)

    def _loaded(self) -> LoadedPair:
        return self._pair.load()

    def _history(self) -> MixedHistory:
        return mixed_history(self._loaded())
