# SPDX-License-Identifier: Apache-2.0
"""The methods of a table that read: rows of a snapshot, changes, and streams of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.table.history import TableHistory
from lakeformat.tables.position import AnyPosition, Position

if TYPE_CHECKING:
    from lakeformat.iceberg.branch_history import BranchSnapshot
    from lakeformat.iceberg.read.scan import Scan
    from lakeformat.iceberg.table.change_stream import ChangeStream
    from lakeformat.iceberg.table.consumers import TableConsumers
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.rows.conditions.predicate import Predicate
    from lakeformat.tables.arguments import Partitions, PartitionSpec, WindowEnd
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.partition_rows import PartitionRows
    from lakeformat.tables.results import Rows

__all__ = ["TableReads"]


class TableReads(TableHistory):
    """The methods of a table that read."""

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
        """Scan the rows of the newest snapshot of the branch, or of one chosen by id, tag or time.

        ``where`` is a SQL condition, or a condition made with ``lake.col``. Files without matching
        rows are skipped by their partition values and statistics, also if a file has an older
        partition spec. ``partitions`` selects rows by values of partition columns without a
        transform: ``{"dt": "2024-01-01"}``, or a list of these. ``snapshot`` is a snapshot id or a
        position. A chosen snapshot is read with the columns that the table had then.

        ``newest`` makes a Paimon table ignore its options ``scan.*``, which can choose a snapshot.
        An Iceberg table has no such options, so ``newest`` has no effect here.

        Raise ``NotFoundError`` if the chosen snapshot does not exist, ``InvalidRequestError`` for a
        column or value that does not fit the table, and ``UnsupportedError`` for a ``watermark``.
        """
        from lakeformat.iceberg.choice import choose
        from lakeformat.iceberg.read.scan import Scan
        from lakeformat.iceberg.read.time_travel import find_state
        from lakeformat.iceberg.read.where import row_filter
        from lakeformat.tables.scan_arguments import check_limit

        if watermark is not None:
            raise UnsupportedError(
                f"{self.location} is an Iceberg table, which has no watermarks: use as_of"
            )
        loaded = self._loaded()
        chosen = choose(loaded, self._history(), snapshot=snapshot, tag=tag, as_of=as_of)
        state = find_state(loaded.places, loaded.metadata, **chosen)
        asked = row_filter(loaded.metadata, state.schema, where, partitions)
        return Scan(state, columns, asked, check_limit(limit))

    def snapshot(self, number: AnyPosition) -> BranchSnapshot | None:
        """Return a snapshot of the branch by id or position.

        None if it has expired, if a rollback removed it, or if it does not exist yet.
        """
        wanted = self.position(number)
        found = (each for each in self._history().snapshots if each.position.is_exactly(wanted))
        return next(found, None)

    def state_scan(
        self,
        snapshot: AnyPosition,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> Scan:
        """Return a scan of the rows that a stream delivers first if it starts at a snapshot.

        The rows have the current columns of the table, like the changes that follow. Raise
        ``NotFoundError`` if the snapshot does not exist.
        """
        from lakeformat.iceberg.choice import choose
        from lakeformat.iceberg.read.plan import TableState
        from lakeformat.iceberg.read.scan import Scan
        from lakeformat.iceberg.read.time_travel import find_state
        from lakeformat.iceberg.read.where import row_filter

        loaded = self._loaded()
        chosen = choose(loaded, self._history(), snapshot=snapshot)
        found = find_state(loaded.places, loaded.metadata, **chosen)
        state = TableState(loaded.places, loaded.metadata, found.snapshot, loaded.metadata.schema)
        asked = row_filter(loaded.metadata, state.schema, where, None)
        return Scan(state, columns, asked)

    def _scan_at(self, position: Position, columns: Sequence[str], where: Predicate | None) -> Scan:
        return self.state_scan(position, columns=columns, where=where)

    def partition_rows(self, partition: PartitionSpec) -> PartitionRows:
        """Return the number of rows, including deleted rows, in the files of the chosen partitions.

        ``partition`` has values of some or all partition columns.
        """
        from lakeformat.tables.partition_rows import PartitionRows

        scan = self.scan(partitions=[partition])
        rows = sum(split.file.record_count or 0 for split in scan.splits())
        path = "/".join(f"{column}={value}" for column, value in partition.items())
        return PartitionRows(scan.snapshot_id, {path: rows} if rows else {})

    def changes(
        self,
        after: WindowEnd,
        upto: WindowEnd | None = None,
        mode: str = "auto",
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        partitions: Partitions | None = None,
        keys: Sequence[str] | None = None,
    ) -> Rows:
        """Return the changes after ``after``, up to and including ``upto``, by default the newest
        snapshot.

        Both are positions, snapshot ids, names of tags or branches, or datetimes; ``after=0`` is
        before the first snapshot. If both are the same, there are no changes. A datetime stands for
        the snapshot that was the newest at that time, even if a rollback has removed it since. The
        metadata logs this only for main. On another branch, a datetime stands for the last
        snapshot of the branch that was committed by then.

        The first column, ``rowkind``, is the kind of each change: ``+I`` inserted, ``-D`` deleted,
        ``-U`` and ``+U`` before and after an update. ``where`` may name ``rowkind``, too. ``keys``
        lists the columns that identify a row, by default the identifier fields of the schema.
        Without key columns, an update is ``-D`` and ``+I``.

        ``mode="changelog"`` returns the changes commit by commit. ``"diff"`` returns the difference
        between the two snapshots. ``"appends"`` returns only the rows of commits that neither
        delete nor overwrite rows. ``"auto"`` is ``"diff"`` between two tags or branches, and
        between two times if a rollback has removed the snapshot of ``after``. Otherwise it is
        ``"changelog"``. Rows are read with the current columns of the table. Raise
        ``NotFoundError`` if a needed snapshot has expired.
        """
        from lakeformat.iceberg.table.window_changes import window_changes

        return window_changes(
            self._loaded(),
            self._history(),
            after,
            upto,
            mode,
            columns=columns,
            where=where,
            partitions=partitions,
            keys=keys,
        )

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
        keys: Sequence[str] | None = None,
    ) -> ChangeStream:
        """Stream changes, one commit after the other; the stream never waits for the next commit.

        ``mode`` chooses the start. ``latest-full``, ``compacted-full`` and ``from-snapshot-full``
        deliver all rows first and then changes. ``latest``, ``from-snapshot`` with ``snapshot=``,
        and ``from-timestamp`` with ``as_of=`` deliver only changes. With a ``consumer`` the stream
        resumes after the last acknowledged commit. The rows have the form of ``changes``. Reading
        raises ``NotFoundError`` if commits to deliver have expired or were rolled back.
        """
        from lakeformat.iceberg.choice import snapshot_id_of
        from lakeformat.iceberg.read.asked_rows import asked_rows
        from lakeformat.iceberg.table.change_stream import ChangeStream
        from lakeformat.tables.stream import StreamStart

        loaded = self._loaded()
        asked = asked_rows(
            loaded.metadata, columns=columns, where=where, partitions=partitions, keys=keys
        )
        if snapshot is not None:
            snapshot = snapshot_id_of(loaded, self._history(), snapshot)
        return ChangeStream(self._handle, StreamStart(mode, snapshot, as_of), asked, consumer)

    @property
    def consumers(self) -> TableConsumers:
        """The consumers: named readers of changes, with their positions in the table's
        directory.
        """
        from lakeformat.iceberg.table.consumers import TableConsumers

        return TableConsumers(self._handle)
