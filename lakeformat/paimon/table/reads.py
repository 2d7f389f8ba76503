# SPDX-License-Identifier: Apache-2.0
"""The methods of ``Table`` that read: rows of a snapshot, changes between two snapshots, a stream
of changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    FIRST_SNAPSHOT_ID,
    is_still_newest,
    latest_snapshot,
    read_snapshot_if_present,
)
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.paimon.snapshot_positions import number_of_kept, position_at, snapshot_number
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.since import Since

if TYPE_CHECKING:
    from lakeformat.paimon.read.changes.changes import Changes
    from lakeformat.paimon.read.changes.snapshot_change import SnapshotChange
    from lakeformat.paimon.read.changes.streaming import ChangeStream
    from lakeformat.paimon.read.scan import Scan
    from lakeformat.paimon.read.shown_state import ShownState
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.rows.conditions.predicate import Predicate
    from lakeformat.tables.arguments import Partitions, WindowEnd
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.wanted_table import WantedTable

__all__ = ["TableReads"]


class TableReads:
    """The methods of ``Table`` that read; the base class of the other groups of methods."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    @property
    def location(self) -> str:
        """The URI of the table."""
        return self._handle.uri

    @property
    def branch(self) -> str:
        """The name of the branch that is read and written."""
        return self._handle.layout.branch

    @property
    def identity(self) -> str:
        """A text that changes if the table is dropped and created again under its name."""
        from lakeformat.paimon.metadata.schema_file import table_identity

        return table_identity(self._handle.storage, self._handle.layout)

    @property
    def schema(self) -> TableSchema:
        """The schema of the table: columns, keys and options."""
        return self._handle.schema

    @property
    def schema_id(self) -> int:
        """The id of the schema."""
        return self.schema.id

    @property
    def key_columns(self) -> list[str]:
        """The columns of the primary key; empty if there is none."""
        return [*self.schema.primary_keys]

    @property
    def why_changes_delete(self) -> str | None:
        """The reason why changes may delete rows, as a clause; None if changes only add rows."""
        return "has a primary key" if self.schema.primary_keys else None

    def contradictions(self, wanted: WantedTable) -> list[str]:
        """Return a text for each difference between this table and the description ``wanted``.

        The primary key, the partition columns and each option are compared only if ``wanted`` sets
        them. Columns outside the keys are not compared.
        """
        from lakeformat.paimon.schema_changes.contradictions import contradictions

        return contradictions(self.schema, wanted)

    @property
    def options(self) -> TableOptions:
        """The options of the table, with typed values."""
        return self._handle.options

    def latest_snapshot(self, known: Snapshot | None = None) -> Snapshot | None:
        """Return the newest snapshot; None for a table without commits.

        Raise NotFoundError if the table was renamed or dropped after it was opened. For polling,
        pass the snapshot that the last call returned as ``known``. If it is still the newest, the
        call costs two small requests and no listing.
        """
        storage, layout = self._handle.storage, self._handle.layout
        if known is not None and is_still_newest(storage, layout, known):
            return known
        if (found := latest_snapshot(storage, layout)) is None:
            from lakeformat.paimon.commit.same_table import require_there

            require_there(self._handle)
        return found

    def position(self, named: AnyPosition | str | Mapping[str, Any] | None = None) -> Position:
        """Return the position of the newest snapshot; for a table without commits, the start.

        If ``named`` is a stored position or a snapshot number, return this as a position of the
        table. Raise InvalidRequestError for a position of another branch or table.
        """
        if named is None:
            head = self.latest_snapshot()
            return position_at(self._handle, 0) if head is None else head.position
        given = Position.parse(named)
        number = snapshot_number(self._handle, "a position", given)
        return position_at(self._handle, number, given.identity)

    def positions(
        self, *, after: AnyPosition | None = None, upto: AnyPosition | None = None, limit: int
    ) -> list[Position]:
        """Return the newest ``limit`` positions after ``after`` and up to ``upto``, oldest first.

        Positions are computed, not read, so some of their snapshots may have expired.
        ``after=None`` means the start of the history, ``upto=None`` the newest snapshot.
        """
        handle = self._handle
        end = self.position() if upto is None else upto
        last = snapshot_number(handle, "'upto' must be a snapshot number", end)
        first = (
            0
            if after is None
            else snapshot_number(handle, "'after' must be a snapshot number", after)
        )
        return [
            position_at(handle, number) for number in range(max(first, last - limit) + 1, last + 1)
        ]

    def advance(self, after: AnyPosition, limit: int | None = None) -> Position:
        """Return the position ``limit`` snapshots after ``after``, or the newest if there are
        fewer.

        ``limit=None`` returns the newest. If the table was rolled back, the newest position may be
        before ``after``.
        """
        newest = self.position()
        if limit is None:
            return newest
        start = snapshot_number(self._handle, "'after' must be a snapshot number", after)
        return min(newest, position_at(self._handle, start + limit))

    def since(self, after: AnyPosition, upto: AnyPosition | None = None) -> Since[Snapshot]:
        """Return the snapshots after ``after``, oldest first, up to ``upto`` or the newest.

        The result also shows if some of these snapshots have expired, and if a rollback removed
        ``after``.
        """
        from lakeformat.paimon.read.since import find_since

        return find_since(self._handle, after, upto)

    def snapshots(self, *, after: AnyPosition = 0) -> list[Snapshot]:
        """Return every existing snapshot after the position ``after``, oldest first."""
        return [*self.since(after).snapshots]

    def snapshot(self, number: AnyPosition) -> Snapshot | None:
        """Return a snapshot by number or position; None if it has expired or does not exist yet."""
        handle = self._handle
        wanted = snapshot_number(handle, "'number' must be a snapshot number", number)
        if wanted < FIRST_SNAPSHOT_ID:
            return None
        return read_snapshot_if_present(handle.storage, handle.layout, wanted)

    def snapshot_change(self, number: AnyPosition) -> SnapshotChange | None:
        """Return the counts of files, rows and bytes that one snapshot added and deleted.

        The counts are for the whole table, and for each changed partition. Return None if the
        snapshot has expired or does not exist yet. Only the manifests of its own commit are read,
        however large the table is.
        """
        from lakeformat.paimon.read.changes.snapshot_change import snapshot_change

        handle = self._handle
        named = snapshot_number(handle, "'number' must be a snapshot number", number)
        return snapshot_change(handle, named)

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
    ) -> Scan:
        """Scan the rows of the newest snapshot, or of one chosen by number, tag, time or watermark.

        ``where`` is a SQL condition or one made with ``lake.col``. ``partitions`` chooses
        partitions by their values, ``{"dt": "2024-01-01"}`` or a list of such dicts. ``as_of``
        chooses the newest snapshot at that time (UTC unless it has a zone). ``watermark`` chooses
        the oldest snapshot with this watermark or a later one. A chosen snapshot is read with the
        columns the table had then. If no argument chooses a snapshot, the table options ``scan.*``
        may choose one; ``newest`` ignores these options. ``limit`` is the largest number of rows.
        Raise NotFoundError if the chosen snapshot does not exist, and InvalidRequestError if
        several arguments choose one.
        """
        from lakeformat.paimon.read.scan import Scan
        from lakeformat.paimon.read.where import row_filter
        from lakeformat.tables.scan_arguments import check_limit

        handle, state = self._state(snapshot, tag, as_of, watermark, newest=newest)
        asked = row_filter(handle.schema, where, partitions)
        return Scan(
            handle,
            state.snapshot,
            columns,
            asked,
            check_limit(limit),
            created_from_millis=state.created_from_millis,
            decided_by=state.decided_by,
        )

    def changes(
        self,
        after: WindowEnd,
        upto: WindowEnd | None = None,
        mode: str = "auto",
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
    ) -> Changes:
        """Return the changes of the snapshots after ``after`` up to ``upto``, by default the
        newest.

        Both are positions, snapshot numbers, tag names or datetimes; ``after=0`` is before the
        first snapshot. Raise NotFoundError if some of these changes have expired or do not exist
        yet, and InvalidRequestError if the table does not support this ``mode``, or if ``upto`` is
        before ``after``.

        ``mode="delta"`` returns the rows as they were written, ``"changelog"`` returns the rows of
        changelog files, and ``"diff"`` compares two snapshots by key. ``"auto"`` means ``"diff"``
        between two tags. Between other ends, it means ``"changelog"`` if the table has one, else
        ``"delta"``. The first column, ``rowkind``, is the kind of each row; ``where`` may use it,
        too.
        """
        from lakeformat.paimon.read.changes.changes import Changes
        from lakeformat.paimon.read.changes.rows import changed_rows
        from lakeformat.paimon.read.changes.window import find_window

        asked = changed_rows(self.schema, columns, where, partitions)
        return Changes(self._handle, find_window(self._handle, after, upto, mode), asked)

    def stream(
        self,
        mode: str = "latest-full",
        *,
        snapshot: AnyPosition | None = None,
        as_of: Moment | None = None,
        consumer: str | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
    ) -> ChangeStream:
        """Stream changes, one snapshot after another; the stream never waits for the next.

        ``mode`` chooses the start. ``latest-full``, ``compacted-full`` and ``from-snapshot-full``
        begin with all rows, and continue with the changes. ``latest``, ``from-snapshot`` and
        ``from-timestamp`` stream the changes alone. The ``from-snapshot`` modes need ``snapshot``,
        and ``from-timestamp`` needs ``as_of``. With a ``consumer`` the stream resumes after the
        last acknowledged snapshot, and unacknowledged snapshots do not expire. Raise
        InvalidRequestError if the other arguments do not fit ``mode``. The stream raises
        NotFoundError if its next snapshot has expired, or if a rollback has removed a snapshot that
        it has read.
        """
        from lakeformat.paimon.read.changes.rows import changed_rows
        from lakeformat.paimon.read.changes.streaming import ChangeStream
        from lakeformat.tables.stream import StreamStart

        asked = changed_rows(self.schema, columns, where, partitions)
        if isinstance(snapshot, Position):
            snapshot = number_of_kept(
                self._handle, "'snapshot' must be a snapshot number", snapshot
            )
        start = StreamStart(mode, snapshot, as_of)
        return ChangeStream(self._handle, start, asked, consumer)

    def state_scan(
        self,
        snapshot: AnyPosition,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> Scan:
        """Return a scan of the rows that a stream delivers first if it starts at a snapshot.

        Rows that the stream delivers as changes later are left out.
        """
        from lakeformat.paimon.read.changes.files import with_producer_at
        from lakeformat.paimon.read.changes.streaming import lowest_streamed_level
        from lakeformat.paimon.read.scan import Scan
        from lakeformat.paimon.read.time_travel import find_snapshot
        from lakeformat.paimon.read.where import row_filter

        chosen = find_snapshot(self._handle, snapshot=snapshot)
        handle = self._handle if chosen is None else with_producer_at(self._handle, chosen)
        asked = row_filter(handle.schema, where, None)
        least = lowest_streamed_level(handle)
        return Scan(handle, chosen, columns, asked, least_level=least, with_streamed=True)

    def _scan_at(self, position: Position, columns: Sequence[str], where: Predicate | None) -> Scan:
        from lakeformat.paimon.read.scan import Scan
        from lakeformat.paimon.read.time_travel import find_snapshot
        from lakeformat.paimon.read.where import row_filter

        handle, chosen = self._handle, find_snapshot(self._handle, snapshot=position)
        if chosen is not None and chosen.schema_id > handle.schema.id:
            schema = read_schema(handle.storage, handle.layout, chosen.schema_id)
            handle = replace(handle, schema=schema)
        return Scan(handle, chosen, columns, row_filter(handle.schema, where, None))

    def _state(
        self,
        snapshot: AnyPosition | None,
        tag: str | None,
        as_of: Moment | None,
        watermark: int | None,
        *,
        newest: bool,
    ) -> tuple[TableHandle, ShownState]:
        """Return the handle for reading, and the snapshot that the call or the table options
        choose, by default the newest.

        The handle has the schema of that snapshot if the snapshot is read with its own columns.
        Raise InvalidRequestError if ``newest`` is True and another argument chooses a snapshot.
        """
        from lakeformat.paimon.read.shown_state import ShownState, find_shown_state
        from lakeformat.paimon.read.time_travel import find_snapshot

        handle = self._handle
        chosen = find_snapshot(
            handle, snapshot=snapshot, tag=tag, as_of=as_of, watermark=watermark, newest=newest
        )
        if chosen is not None:
            state: ShownState | None = ShownState(chosen, with_its_schema=True)
        else:
            state = None if newest else find_shown_state(handle)
        if state is None:
            return handle, ShownState(self.latest_snapshot())
        if state.snapshot is None or not state.with_its_schema:
            return handle, state
        schema = read_schema(handle.storage, handle.layout, state.snapshot.schema_id)
        return replace(handle, schema=schema), state
