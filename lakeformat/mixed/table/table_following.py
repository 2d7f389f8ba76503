# SPDX-License-Identifier: Apache-2.0
"""The methods of a Mixed table for readers that follow its changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.mixed.stores.store_pair import LoadedPair
from lakeformat.mixed.table.mixed_history import mixed_history
from lakeformat.mixed.table.table_upkeep import TableUpkeep
from lakeformat.tables.position import AnyPosition, Position
from lakeformat.tables.table import offering_arguments

if TYPE_CHECKING:
    from lakeformat.iceberg.read.asked_rows import AskedRows
    from lakeformat.mixed.read.scan import MixedScan
    from lakeformat.mixed.table.change_stream import MixedChangeStream
    from lakeformat.mixed.table.consumers import MixedConsumers
    from lakeformat.mixed.table.mixed_history import MixedSnapshot
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.rows.conditions.predicate import Predicate
    from lakeformat.tables.arguments import Partitions, WindowEnd
    from lakeformat.tables.moment import Moment
    from lakeformat.tables.results import Rows

__all__ = ["TableFollowing"]

_MODES = ("auto", "changelog")


class TableFollowing(TableUpkeep):
    """The methods of a Mixed table for readers that follow its changes."""

    @offering_arguments
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
        """Return the changes after ``after``, up to and including ``upto``, commit by commit.

        Both are positions, ids of snapshots of either store, or datetimes. ``after=0`` is before
        the first snapshot; ``upto=None`` is the newest position. The first column, ``rowkind``, is
        the kind of each change: ``+I`` inserted, ``-D`` deleted, ``-U`` and ``+U`` before and after
        an update. ``+U`` without ``-U`` stores a row whose old values are not known; there may be
        no old row. ``where`` may use ``rowkind``, too. The changes of a key keep their order, so
        a reader that applies them by key has the rows of the table.

        ``mode`` is ``"auto"`` or ``"changelog"``, which are the same. ``keys`` must be None or the
        key of the table. Rows are read with the current columns. Raise ``NotFoundError`` if commits
        have expired or were rolled back. Raise ``InvalidRequestError`` if ``upto`` is before
        ``after``. Raise ``UnsupportedError`` for an overwrite of the base store and for the
        adoption of the table, because no store has their changes. After an expiry, a rollback, an
        overwrite or the adoption, read all rows with a scan, then the changes after its position.
        """
        from lakeformat.mixed.table.change_stream import changes_between

        if mode not in _MODES:
            raise UnsupportedError(
                f"changes of {self.location}, a Mixed table, are read commit by commit: pass "
                f"mode='changelog', got {mode!r}"
            )
        pair = self._pair.load()
        asked = self._asked(pair, columns, where, partitions, keys)
        return changes_between(pair, mixed_history(pair), after, upto, asked)

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
    ) -> MixedChangeStream:
        """Stream changes, one commit after the other; the stream never waits for the next commit.

        ``mode`` chooses the start. ``latest-full``, ``compacted-full`` and ``from-snapshot-full``
        deliver all merged rows of a state first: the newest state, that of the newest optimizing,
        or that of ``snapshot=``. Then they deliver the changes since then. ``latest``,
        ``from-snapshot`` with ``snapshot=``, and ``from-timestamp`` with ``as_of=`` deliver only
        changes. With a ``consumer`` the stream resumes after the last acknowledged commit. The rows
        have the form of ``changes``, and reading them raises the errors of ``changes``.
        """
        from lakeformat.mixed.table.change_stream import MixedChangeStream
        from lakeformat.tables.stream import StreamStart

        pair = self._pair.load()
        asked = self._asked(pair, columns, where, partitions, keys)
        if snapshot is not None:
            snapshot = mixed_history(pair).at(snapshot).snapshot_id
        return MixedChangeStream(self._pair, StreamStart(mode, snapshot, as_of), asked, consumer)

    def snapshot(self, number: AnyPosition) -> MixedSnapshot | None:
        """Return the newest snapshot at a position, or the snapshot that has an id.

        ``number`` is the position, or the id of a snapshot of either store. Return None if the
        snapshot has expired or does not exist yet.
        """
        return mixed_history(self._pair.load()).state(number)

    def state_scan(
        self,
        snapshot: AnyPosition,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> MixedScan:
        """Return a scan of the rows that a stream delivers first if it starts at a snapshot.

        The rows have the columns that the table has now, like the changes that follow.
        """
        from lakeformat.iceberg.read.where import row_filter
        from lakeformat.mixed.read.scan import MixedScan
        from lakeformat.mixed.table.find_state import find_state

        pair = self._pair.load()
        schema = pair.base.metadata.schema
        state = find_state(pair, mixed_history(pair), snapshot=snapshot).with_schema(schema)
        return MixedScan(state, columns, row_filter(pair.base.metadata, schema, where, None))

    def _scan_at(
        self, position: Position, columns: Sequence[str], where: Predicate | None
    ) -> MixedScan:
        return self.state_scan(position, columns=columns, where=where)

    @property
    def consumers(self) -> MixedConsumers:
        """The consumers: named readers of changes, whose positions are stored in the directory of
        the base store.
        """
        from lakeformat.mixed.table.consumers import MixedConsumers

        return MixedConsumers(self._pair)

    def _asked(
        self,
        pair: LoadedPair,
        columns: Sequence[str] | None,
        where: Where | None,
        partitions: Partitions | None,
        keys: Sequence[str] | None,
    ) -> AskedRows:
        from lakeformat.iceberg.read.asked_rows import asked_rows

        key = [each.name for each in pair.key]
        if keys is not None and (isinstance(keys, str) or {*keys} != {*key}):
            raise InvalidRequestError(
                f"keys must be a list of all key columns of the table, {key}, got {keys!r}: leave "
                "out keys"
            )
        return asked_rows(
            pair.base.metadata, columns=columns, where=where, partitions=partitions, keys=key
        )
