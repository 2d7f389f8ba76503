# SPDX-License-Identifier: Apache-2.0
"""DELETE and UPDATE of the rows that meet a condition, as the changes of a batch.

The rows are those of the table when the batch began. A row that a stream changes in the meantime
keeps the change of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.row_changes.new_values import Update, bind_update
from lakeformat.iceberg.row_changes.run import ChangeRequest, change_reason
from lakeformat.iceberg.write.publish import Base
from lakeformat.mixed.batch.begin import BegunBatch
from lakeformat.mixed.batch.moved_rows import MovedRows
from lakeformat.mixed.batch.rows_of_keys import RowsOfKeys
from lakeformat.mixed.read.node_splits import NodeSplit
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.version_field import has_unique_keys, require_no_smaller_version
from lakeformat.mixed.write.change_writer import ChangeWriter
from lakeformat.mixed.write.changes import partition_columns
from lakeformat.mixed.write.write_changes import BatchPlace, publish_changes
from lakeformat.rows.assignments import NewValues
from lakeformat.rows.conditions.filter import PredicateFilter, Where
from lakeformat.rows.row_kinds import DELETE, UPDATE_AFTER, UPDATE_BEFORE, Kinds
from lakeformat.tables.compact_progress import CompactProgress
from lakeformat.tables.row_change_report import Method, RowChangeReport, RowOperation
from lakeformat.types.arrow_memory import array_of

__all__ = ["RowChange", "change_rows", "count_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """The rows to delete, or the rows to update with their new values."""

    where: Where | None
    """The condition that rows must meet; None means all rows, which only an UPDATE may have."""
    new_values: NewValues | None = None
    """The new values of an UPDATE; None for a DELETE."""

    @property
    def operation(self) -> RowOperation:
        """The kind of change."""
        return RowOperation.DELETE if self.new_values is None else RowOperation.UPDATE

    def scan(self, state: MixedState) -> MixedScan:
        """Return a scan of the rows to change."""
        return MixedScan(state, None, self.bound(state))

    def bound(self, state: MixedState) -> PredicateFilter | None:
        """Return the checked condition; None for all rows."""
        return row_filter(state.base.metadata, state.schema, self.where, None)

    def bind(self, state: MixedState) -> Update | None:
        """Return the function that computes the new rows from the old ones; None for a DELETE.

        Raise ``InvalidRequestError`` for arguments that do not fit the table.
        """
        table = state.base.places.uri
        if self.new_values is None:
            if self.where is None:
                raise InvalidRequestError(
                    f"where is None, but must be a condition on the rows of {table} to delete. To "
                    "delete all rows, use truncate(), or where='TRUE' in a batch"
                )
            return None
        update = bind_update(state.schema, self.new_values)
        for each in state.key:
            if each.name in update.assignments.values:
                raise InvalidRequestError(
                    f"{each.name!r} is part of the key of {table}, which an UPDATE cannot change: "
                    "delete the row, and write it with another key"
                )
        return update


def count_rows(state: MixedState, change: RowChange, request: ChangeRequest) -> RowChangeReport:
    """Return the report of a dry run: the number of rows that would be changed.

    Raise ``InvalidRequestError`` for arguments that do not fit the table or its rows.
    """
    update, version = change.bind(state), state.version
    scan = change.scan(state)
    if update is not None and version is not None and version.name in update.assignments.values:
        for old in scan.to_batches():
            new = update(old).cast(old.schema)
            require_no_smaller_version(old.column(version.name), new.column(version.name))
    return _report(state, request, scan, rows=scan.count())


def change_rows(batch: BegunBatch, change: RowChange, request: ChangeRequest) -> RowChangeReport:
    """Change the rows in one commit of the change store, and end the batch."""
    state = batch.state
    work = _RowWork(batch, change, change.scan(state), change.bind(state), request)
    written = publish_changes(
        batch.pair,
        work.fill,
        replaces=has_unique_keys(state.base.metadata.properties),
        commit=request.commit,
        batch=work.place(),
    )
    if written.replayed:
        return RowChangeReport(
            table=state.base.places.uri,
            operation=request.operation,
            method="",
            dry_run=False,
            read_snapshot_id=None,
            snapshot_id=written.snapshot_id,
            rows=None,
            attempts=0,
            replayed=True,
            reason=written.reason,
        )
    return replace(
        _report(state, request, work.scan, rows=work.rows, snapshot_id=written.snapshot_id),
        files_added=written.files,
        bytes_added=written.bytes,
    )


@dataclass(slots=True)
class _RowWork:
    """Reads the rows of a scan and gives their changes to a writer, split by split."""

    batch: BegunBatch
    change: RowChange
    scan: MixedScan
    update: Update | None
    request: ChangeRequest
    rows: int = field(default=0, init=False)
    _moved: MovedRows = field(init=False)

    def __post_init__(self) -> None:
        self._moved = MovedRows(self.batch)

    def fill(self, writer: ChangeWriter) -> None:
        self.batch.require_columns(writer.schema, all_kept=True)
        splits = self.scan.splits()
        if (all_rows := self._rows_to_write_again()) is not None:
            self._report_progress(0)
            self._write_again(all_rows, writer)
            self._report_progress(len(splits))
            return
        for done, split in enumerate(splits):
            self._report_progress(done)
            for old in self.scan.read(split):
                self.rows += old.num_rows
                for changed, kinds in self._changed(split, old):
                    writer.change(changed, kinds, of_stored=True)
        self._report_progress(len(splits))

    def place(self) -> BatchPlace:
        """Return the transaction of the batch, and the checks for its commit.

        In addition to the checks of every batch, the commit is refused if another commit has
        changed rows that this batch moves to another partition.
        """
        place = self.batch.place()

        def require(base: Base, entries: pa.Table) -> None:
            place.require(base, entries)
            self._moved.require_unchanged(base.loaded)

        return replace(place, require=require)

    def _rows_to_write_again(self) -> RowsOfKeys | None:
        """Return the rows for ``_write_again``; None if every row can be changed on its own."""
        state = self.batch.state
        if has_unique_keys(state.base.metadata.properties):
            return None
        found = RowsOfKeys(state, self.change.bound(state))
        if self.update is None:
            return found if found.count() > found.matching else None
        moving = {*partition_columns(state.change.metadata)} & {*self.update.assignments.values}
        return found if moving or found.count() > found.keys else None

    def _write_again(self, all_rows: RowsOfKeys, writer: ChangeWriter) -> None:
        """Delete ``all_rows``, then insert them again, with the changes of the DELETE or UPDATE.

        A DELETE inserts only the rows that do not meet the condition. An UPDATE inserts all rows,
        those that meet the condition with new values.
        """
        for _, old in all_rows.read():
            writer.change(old, np.full(old.num_rows, DELETE, np.int8), of_stored=True)
        where = self.change.bound(self.batch.state)
        for split, old in all_rows.read():
            meets = None if where is None else pc.fill_null(where.mask(old), False)
            chosen = old if meets is None else old.filter(meets)
            self.rows += chosen.num_rows
            if self.update is not None and chosen.num_rows:
                new = self.update(chosen).cast(old.schema)
                self._moved.add(split, chosen, new)
                writer.change(new, None)
            if meets is not None:
                writer.change(old.filter(pc.invert(meets)), None)

    def _changed(
        self, split: NodeSplit, old: pa.RecordBatch
    ) -> Iterator[tuple[pa.RecordBatch, Kinds]]:
        if self.update is None:
            yield old, np.full(old.num_rows, DELETE, np.int8)
            return
        new = self.update(old).cast(old.schema)
        if (version := self.batch.state.version) is not None:
            require_no_smaller_version(old.column(version.name), new.column(version.name))
        self._moved.add(split, old, new)
        both = pa.Table.from_batches([old, new])
        pairs = np.arange(2 * old.num_rows).reshape(2, -1).T.ravel()
        rows = both.take(array_of(pairs)).combine_chunks().to_batches()
        kinds = np.tile(np.array([UPDATE_BEFORE, UPDATE_AFTER], np.int8), old.num_rows)
        for each in rows:  # one batch, or none without rows
            yield each, kinds

    def _report_progress(self, done: int) -> None:
        if self.request.on_progress is None:
            return
        sizes = [each.size_bytes for each in self.scan.splits()]
        self.request.on_progress(
            CompactProgress(
                table=self.batch.state.base.places.uri,
                units=len(sizes),
                done=done,
                bytes=sum(sizes),
                bytes_done=sum(sizes[:done]),
            )
        )


def _report(
    state: MixedState,
    request: ChangeRequest,
    scan: MixedScan,
    *,
    rows: int,
    snapshot_id: int | None = None,
) -> RowChangeReport:
    planned = state.change.snapshot
    return RowChangeReport(
        table=state.base.places.uri,
        operation=request.operation,
        method=Method.KEYS,
        dry_run=request.dry_run,
        read_snapshot_id=None if planned is None else planned.snapshot_id,
        snapshot_id=snapshot_id,
        rows=rows,
        files_read=len({file.path for split in scan.splits() for file in split.files}),
        reason=change_reason(request, rows, snapshot_id),
    )
