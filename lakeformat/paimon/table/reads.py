"""What a user reads of a table: rows of a snapshot, changes between two, a stream of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.schema_file import read_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import (
    is_still_newest,
    latest_snapshot,
    read_snapshot_if_present,
    snapshot_ids,
)
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema
from lakeformat.rows.conditions.filter import Where

if TYPE_CHECKING:
    from lakeformat.paimon.read.changes.changes import Changes
    from lakeformat.paimon.read.changes.snapshot_change import SnapshotChange
    from lakeformat.paimon.read.changes.streaming import ChangeStream
    from lakeformat.paimon.read.changes.window import WindowEnd
    from lakeformat.paimon.read.scan import Scan
    from lakeformat.paimon.read.shown_state import ShownState
    from lakeformat.paimon.read.time_travel import Moment
    from lakeformat.paimon.read.where import Partitions

__all__ = ["TableReads"]


class TableReads:
    """The reading half of a table."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    @property
    def location(self) -> str:
        """Where the table lies, for people and other programs."""
        return self._handle.uri

    @property
    def schema(self) -> TableSchema:
        """Columns, keys and options."""
        return self._handle.schema

    @property
    def options(self) -> TableOptions:
        """The typed options."""
        return self._handle.options

    def latest_snapshot(self, known: Snapshot | None = None) -> Snapshot | None:
        """The newest snapshot; None before the first commit.

        Whoever looks again and again says which it was when last looked: where it still is, this
        costs two small requests and no listing.
        """
        storage, layout = self._handle.storage, self._handle.layout
        if known is not None and is_still_newest(storage, layout, known):
            return known
        return latest_snapshot(storage, layout)

    def snapshots(self, *, after: int = 0) -> list[Snapshot]:
        """Every snapshot that has not expired, oldest first; or those after one of that number."""
        from lakeformat.paimon.read.time_travel import require_number

        require_number("after is the number of a snapshot", after)
        storage, layout = self._handle.storage, self._handle.layout
        found = (
            read_snapshot_if_present(storage, layout, number)
            for number in snapshot_ids(storage, layout)
            if number > after
        )
        return [snapshot for snapshot in found if snapshot is not None]

    def snapshot(self, number: int) -> Snapshot | None:
        """One snapshot by its number; None if it has expired, or is still to come."""
        return read_snapshot_if_present(self._handle.storage, self._handle.layout, number)

    def snapshot_change(self, number: int) -> SnapshotChange | None:
        """Which files one snapshot added and deleted, by partition; None if it has expired.

        Read from the snapshot's own manifests, however large the table is.
        """
        from lakeformat.paimon.read.changes.snapshot_change import snapshot_change

        return snapshot_change(self._handle, number)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        newest: bool = False,
        limit: int | None = None,
    ) -> Scan:
        """Rows of the newest snapshot, or of the one named by number, tag, time or watermark.

        ``where`` is a SQL condition or one made with ``lake.col``; ``partitions`` names some by
        their values, ``{"dt": "2024-01-01"}`` or a list of such. ``as_of`` is the newest snapshot
        of that time (UTC unless it says a zone), ``watermark`` the oldest that has reached it. A
        snapshot that is named is read with the columns the table had then. If none is named, the
        options ``scan.*`` of the table may name one; ``newest`` reads the newest in spite of them.
        """
        from lakeformat.paimon.read.scan import Scan
        from lakeformat.paimon.read.where import check_limit, row_filter

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
        """What changed after one snapshot and up to another, this included; ``upto`` is the newest.

        Both are numbers of snapshots, names of tags or datetimes; ``after=0`` is before the first.
        ``mode="delta"`` gives the rows as they were written, ``"changelog"`` those of changelog
        files, ``"diff"`` compares two states by key; ``"auto"`` compares two tags, and otherwise
        reads the changelog where the table keeps one, else the delta. The first column,
        ``rowkind``, says what each row does; ``where`` may ask for it too.
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
        snapshot: int | None = None,
        as_of: Moment | None = None,
        consumer: str | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
    ) -> ChangeStream:
        """Changes as they are committed, snapshot after snapshot; it never waits for the next.

        ``mode`` says where it starts: with all rows and then what follows (``latest-full``,
        ``compacted-full``, ``from-snapshot-full``), or with changes alone (``latest``,
        ``from-snapshot`` with ``snapshot=``, ``from-timestamp`` with ``as_of=``). With a
        ``consumer`` it goes on where that one last acknowledged; from the first time on, what is
        not acknowledged is kept from expiring.
        """
        from lakeformat.paimon.read.changes.rows import changed_rows
        from lakeformat.paimon.read.changes.streaming import ChangeStream, StreamStart

        asked = changed_rows(self.schema, columns, where, partitions)
        start = StreamStart(mode, snapshot, as_of)
        return ChangeStream(self._handle, start, asked, consumer)

    def state_scan(
        self, snapshot: int, *, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Scan:
        """The rows a stream begins with at a snapshot: those its changes will not tell of."""
        from lakeformat.paimon.read.changes.streaming import least_told_level
        from lakeformat.paimon.read.scan import Scan
        from lakeformat.paimon.read.time_travel import find_snapshot
        from lakeformat.paimon.read.where import row_filter

        handle, chosen = self._handle, find_snapshot(self._handle, snapshot=snapshot)
        asked = row_filter(handle.schema, where, None)
        least = least_told_level(handle)
        return Scan(handle, chosen, columns, asked, least_level=least, is_told=True)

    def _state(
        self,
        snapshot: int | None,
        tag: str | None,
        as_of: Moment | None,
        watermark: int | None,
        *,
        newest: bool,
    ) -> tuple[TableHandle, ShownState]:
        """The state asked for, or named by the options; with the table of then if one was named."""
        from lakeformat.paimon.read.shown_state import ShownState, find_shown_state
        from lakeformat.paimon.read.time_travel import find_snapshot

        handle = self._handle
        chosen = find_snapshot(handle, snapshot=snapshot, tag=tag, as_of=as_of, watermark=watermark)
        if newest and chosen is not None:
            raise InvalidRequestError(
                "newest=True reads the newest snapshot, and another argument names one: leave out "
                "one of them"
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
