# SPDX-License-Identifier: Apache-2.0
"""The methods of a Mixed table that run a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakeformat.mixed.table.table_upkeep import TableUpkeep
from lakeformat.tables.table import offering_arguments

if TYPE_CHECKING:
    from lakeformat.iceberg.row_changes.run import ChangeRequest
    from lakeformat.mixed.batch.batch import MixedBatch
    from lakeformat.mixed.batch.end_batch import EndedBatches
    from lakeformat.mixed.batch.row_changes import RowChange
    from lakeformat.rows.assignments import NewValues
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Conflict, Overwritten, PartitionSpec
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.compact_progress import OnUnit
    from lakeformat.tables.row_change_report import RowChangeReport
    from lakeformat.tables.write_report import WriteReport

__all__ = ["TableBatches"]


class TableBatches(TableUpkeep):
    """The methods of a Mixed table that run a batch."""

    def begin(self) -> MixedBatch:
        """Begin a batch, which reads the table as it is now and commits later.

        ``begin`` gives the batch its transaction. In the order of transactions, the changes of the
        batch are therefore older than every commit after ``begin``. A change that a stream makes in
        the meantime remains, although the batch commits last. The batch ends with its first commit,
        for example by ``write`` or ``delete``. To end it without a commit, call ``abort``, or use
        it as a context manager. While the batch runs, optimizing merges only changes before it, and
        another ``begin`` raises ``LockUnavailableError``. If the process of a batch died, its lease
        ends after 60 seconds.
        """
        from lakeformat.mixed.batch.batch import MixedBatch

        return MixedBatch(self._pair)

    def end_batch(self, *, dry_run: bool = False) -> EndedBatches:
        """End the batch that runs on the table, from any process.

        The ended batch can no longer commit: its methods that commit raise
        ``LockUnavailableError``. Call ``end_batch`` if a batch hangs, or if its lease ends too late
        because the clock of its machine was wrong. It is not needed if the process of a batch died:
        the next batch or compaction ends this batch after 60 seconds. Batches of Amoro are not
        ended. A ``dry_run`` changes nothing; its report has the transaction and the lease of the
        batch. Raise ``LockUnavailableError`` if another batch begins at the same moment.
        """
        from lakeformat.mixed.batch.end_batch import end_batch

        return end_batch(self._pair, dry_run=dry_run)

    @offering_arguments
    def delete(
        self,
        where: Where,
        *,
        conflict: Conflict | None = None,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnUnit | None = None,
    ) -> RowChangeReport:
        """Delete the rows that meet a condition, by a batch that begins and commits in this call.

        A row that another commit changes in the meantime keeps that change, so the only
        value of ``conflict`` is ``"transaction-order"``, the default. A repeated call with the same
        ``commit`` publishes nothing again. ``dry_run`` only counts the rows. Raise
        ``LockUnavailableError`` while another batch runs, and ``InvalidRequestError`` for a
        condition that does not fit the table.
        """
        from lakeformat.iceberg.row_changes.run import ChangeRequest
        from lakeformat.mixed.batch.row_changes import RowChange
        from lakeformat.tables.row_change_report import RowOperation

        request = ChangeRequest(
            operation=RowOperation.DELETE, commit=commit, dry_run=dry_run, on_progress=on_progress
        )
        found = self._before_change(RowChange(where=where), request, conflict)
        if found is not None:
            return found
        with self.begin() as batch:
            return batch.delete(where, commit=commit, on_progress=on_progress)

    @offering_arguments
    def update(
        self,
        where: Where | None,
        set: NewValues,
        *,
        conflict: Conflict | None = None,
        commit: CommitId | None = None,
        dry_run: bool = False,
        on_progress: OnUnit | None = None,
    ) -> RowChangeReport:
        """Set columns of the rows that meet a condition, by a batch that begins and commits in this
        call.

        ``where=None`` means all rows. ``set={"price": 1}`` stores one value in each row. A function
        is called with the old rows, as in ``{"price": lambda rows: pc.add(rows["price"], 1)}``.
        Raise ``InvalidRequestError`` for a column of the key, or a value that does not fit.
        Concurrent changes, ``conflict``, ``commit``, ``dry_run`` and other batches are handled as
        by ``delete``.
        """
        from lakeformat.iceberg.row_changes.run import ChangeRequest
        from lakeformat.mixed.batch.row_changes import RowChange
        from lakeformat.tables.row_change_report import RowOperation

        request = ChangeRequest(
            operation=RowOperation.UPDATE, commit=commit, dry_run=dry_run, on_progress=on_progress
        )
        change = RowChange(where=where, new_values=set or {})
        found = self._before_change(change, request, conflict)
        if found is not None:
            return found
        with self.begin() as batch:
            return batch.update(where, set, commit=commit, on_progress=on_progress)

    def truncate(self, *, commit: CommitId | None = None) -> WriteReport:
        """Delete all rows, by a batch that begins and commits in this call.

        Earlier positions keep the rows until their snapshots expire. No data file is read. Rows
        that other commits add in the meantime remain. Raise ``LockUnavailableError`` while another
        batch runs.
        """
        return self._replace((), "table", commit)

    def drop_partitions(
        self, partitions: Iterable[PartitionSpec], *, commit: CommitId | None = None
    ) -> WriteReport:
        """Delete the rows of partitions, as ``truncate`` deletes all rows.

        Each partition is a dict ``{column: value}``. Its columns are some or all of those that
        partition the table without a transform. Raise ``InvalidRequestError`` for any other column,
        an empty dict or an empty list.
        """
        from lakeformat.tables.arguments import partitions_to_drop

        return self._replace((), partitions_to_drop(partitions), commit)

    def _before_change(
        self, change: RowChange, request: ChangeRequest, conflict: Conflict | None
    ) -> RowChangeReport | None:
        """Return the report of an earlier call or of a dry run; None if a batch must begin."""
        from lakeformat.iceberg.row_changes.run import replayed_report
        from lakeformat.mixed.batch.conflict import require_transaction_order
        from lakeformat.mixed.batch.row_changes import count_rows
        from lakeformat.mixed.table.newest_runs import newest_runs
        from lakeformat.mixed.write.write_changes import earlier_write

        require_transaction_order(self._pair.base.uri, conflict)
        pair, state, _ = newest_runs(self._pair)
        if (earlier := earlier_write(self._pair, pair, request.commit)) is not None:
            return replayed_report(self._pair.base, request, earlier[1])
        if request.dry_run:
            return count_rows(state, change, request)
        change.scan(state)
        change.bind(state)  # arguments that do not fit begin no batch
        return None

    def _by_batch(
        self,
        data: Any,
        kinds: Any,
        overwritten: Overwritten | None,
        conflict: Conflict | None,
        commit: CommitId | None,
        properties: Mapping[str, str] | None,
    ) -> WriteReport:
        from lakeformat.mixed.batch.batch import find_write
        from lakeformat.mixed.batch.conflict import require_transaction_order
        from lakeformat.mixed.batch.overwrite import refuse_kinds

        require_transaction_order(self._pair.base.uri, conflict)
        if overwritten is not None:
            refuse_kinds(kinds)
            return self._replace(data, overwritten, commit, properties)
        if commit is not None and (earlier := find_write(self._pair, commit)) is not None:
            return earlier
        with self.begin() as batch:
            return batch.write(data, kinds, commit=commit, properties=properties)

    def begin_write(
        self,
        overwrite: Overwritten | None,
        conflict: Conflict | None,
        *,
        where: Where | None = None,
    ) -> MixedBatch | None:
        """Begin the batch of a write with these arguments; return None if the write needs no batch.

        Writers in other processes get the transaction of the batch, and ``batch.commit`` publishes
        their files. With ``where`` the rows that meet a condition on partition columns are
        overwritten. Raise ``UnsupportedError`` for a condition on other columns or for
        ``conflict="optimistic"``, and ``LockUnavailableError`` while another batch runs.
        """
        from lakeformat.mixed.batch.conflict import require_transaction_order
        from lakeformat.mixed.batch.overwrite import Replaced

        require_transaction_order(self._pair.base.uri, conflict)
        is_overwrite = overwrite is not None or where is not None
        if is_overwrite:
            replaced = Replaced(partitions=overwrite, where=where)
            replaced.require_valid(self._pair.load().base.metadata)
        return self.begin() if is_overwrite or conflict is not None else None

    def _replace(
        self,
        data: Any,
        partitions: Overwritten | Sequence[PartitionSpec],
        commit: CommitId | None,
        properties: Mapping[str, str] | None = None,
    ) -> WriteReport:
        from lakeformat.mixed.batch.batch import find_write
        from lakeformat.mixed.batch.overwrite import Replaced

        if commit is not None and (earlier := find_write(self._pair, commit)) is not None:
            return earlier
        metadata = self._pair.load().base.metadata
        Replaced(partitions=partitions).require_valid(metadata)  # else no batch begins
        with self.begin() as batch:
            return batch.overwrite(data, partitions, commit=commit, properties=properties)
