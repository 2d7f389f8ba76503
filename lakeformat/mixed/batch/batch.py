# SPDX-License-Identifier: Apache-2.0
"""The public class of a batch: it reads the table as it was at its start, and makes one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.iceberg.read.where import row_filter
from lakeformat.iceberg.row_changes.run import ChangeRequest
from lakeformat.mixed.batch.begin import begin_batch
from lakeformat.mixed.batch.overwrite import Replaced, overwrite_base
from lakeformat.mixed.batch.row_changes import RowChange, change_rows
from lakeformat.mixed.read.scan import MixedScan
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.mixed.write.change_writer import ChangeWriter
from lakeformat.mixed.write.write_changes import (
    change_report,
    earlier_write,
    fill_given,
    publish_changes,
)
from lakeformat.tables.row_change_report import RowChangeReport, RowOperation
from lakeformat.tables.scan_arguments import check_limit
from lakeformat.tables.table import offer_arguments
from lakeformat.tables.write_report import WriteReport
from lakeformat.types.sentence import sentence

if TYPE_CHECKING:
    from lakeformat.mixed.write.message import MixedCommitMessage
    from lakeformat.rows.assignments import NewValues
    from lakeformat.rows.conditions.filter import Where
    from lakeformat.tables.arguments import Overwritten, Partitions, PartitionSpec
    from lakeformat.tables.commit_id import CommitId
    from lakeformat.tables.compact_progress import OnUnit

__all__ = ["MixedBatch", "find_write"]

R = TypeVar("R", WriteReport, RowChangeReport)
_log = logging.getLogger(__name__)


@offer_arguments
class MixedBatch:
    """A batch on a Mixed table, made by ``table.begin()``; its first successful commit ends it.

    In the order of transactions, its changes come after all commits before ``begin``, and before
    all later commits. As a context manager it ends without a change if no commit was made.

    A commit raises ``InvalidRequestError`` if the batch has committed or was aborted, and
    ``LockUnavailableError`` if another process has taken over the lease of the batch or has ended
    the batch. A commit raises ``CommitConflictError`` for a conflict with a newer commit. A failed
    commit does not end the batch.
    """

    def __init__(self, pair: StorePair) -> None:
        self._pair = pair
        self._begun = begin_batch(pair)
        # Else a batch that is neither committed nor aborted would keep others off for ever.
        finalize(self, self._begun.lease.stop_renewing)
        self._is_open = True

    def __repr__(self) -> str:
        return f"<MixedBatch {self.transaction} of {self._pair.base.uri}>"

    def __enter__(self) -> MixedBatch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_open:
            return
        if error is None:
            self.abort()
            return
        try:
            self.abort()
        except LakeError as reason:  # the error of the block is the one to see
            _log.warning(
                "%s was not recorded as ended: %s The next batch or compaction ends it",
                self._begun,
                sentence(reason),
            )

    @property
    def transaction(self) -> int:
        """The transaction id: the sequence number of the change store at which the batch began."""
        return self._begun.transaction

    @property
    def position(self) -> str:
        """The position of the table at which the batch began."""
        return str(self._begun.state.position)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        partitions: Partitions | None = None,
        limit: int | None = None,
    ) -> MixedScan:
        """Scan the merged rows of the table as they were when the batch began."""
        state = self._begun.state
        asked = row_filter(state.base.metadata, state.schema, where, partitions)
        return MixedScan(state, columns, asked, check_limit(limit))

    def write(
        self,
        data: Any,
        kinds: Any = None,
        *,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> WriteReport:
        """Store and delete rows by their key as ``table.write`` does, and end the batch.

        The changes are one commit of the change store. They count as older than all commits since
        the batch began: if a stream has changed the same key since then, the newer change remains.
        """

        def fill(writer: ChangeWriter) -> None:
            self._begun.require_columns(writer.schema)
            fill_given(writer, data, kinds)

        return self._commit(
            lambda: publish_changes(
                self._pair,
                fill,
                commit=commit,
                properties=properties,
                batch=self._begun.place(),
            )
        )

    def overwrite(
        self,
        data: Any,
        partitions: Overwritten | Sequence[PartitionSpec] | None = None,
        *,
        where: Where | None = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> WriteReport:
        """Replace the rows of whole partitions in one commit of the base store, and end the batch.

        Give ``partitions`` as for ``table.write(overwrite=…)``, or as a list of dicts of partition
        values. Or give ``where``, a condition on partition columns. Changes that other commits have
        made to rows since the batch began are kept. Raise ``InvalidRequestError`` if two new rows
        share a key.
        """
        replaced = Replaced(partitions=partitions, where=where)
        return self._commit(
            lambda: change_report(
                self._pair.base.uri,
                overwrite_base(self._begun, data, replaced, commit=commit, properties=properties),
            )
        )

    def commit(
        self,
        messages: Iterable[MixedCommitMessage],
        *,
        overwrite: Overwritten | None = None,
        where: Where | None = None,
        commit: CommitId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> WriteReport:
        """Publish files of writers in other processes, in one commit that ends the batch.

        The writers are made by ``table.new_writer(transaction=batch.transaction)``, with the same
        ``overwrite``. Without ``overwrite`` the files contain changes, as in ``write``. With
        ``overwrite`` the files replace rows, as in the method ``overwrite``. To replace the rows
        that meet a condition on partition columns, make the writers with ``overwrite="table"``, and
        pass only ``where`` to this call. After an error the files are kept: call ``table.abort``.
        """
        from lakeformat.mixed.batch.prepared_overwrite import commit_overwrite
        from lakeformat.mixed.write.message import check_messages
        from lakeformat.mixed.write.prepared_changes import commit_changes

        prepared, begun = check_messages(messages), self._begun
        if overwrite is None and where is None:
            return self._commit(
                lambda: commit_changes(
                    self._pair, prepared, commit=commit, properties=properties, batch=begun.place()
                )
            )
        replaced = Replaced(partitions=overwrite, where=where)
        return self._commit(
            lambda: commit_overwrite(
                begun, prepared, replaced, commit=commit, properties=properties
            )
        )

    def delete(
        self,
        where: Where,
        *,
        commit: CommitId | None = None,
        on_progress: OnUnit | None = None,
    ) -> RowChangeReport:
        """Delete the rows that met a condition when the batch began, and end the batch.

        The deletes are one commit of the change store.
        """
        request = ChangeRequest(
            operation=RowOperation.DELETE, commit=commit, on_progress=on_progress
        )
        return self._change_rows(RowChange(where=where), request)

    def update(
        self,
        where: Where | None,
        set: NewValues,
        *,
        commit: CommitId | None = None,
        on_progress: OnUnit | None = None,
    ) -> RowChangeReport:
        """Set columns of the rows that met a condition when the batch began, and end the batch.

        The new rows are one commit of the change store. ``where=None`` means all rows.
        """
        request = ChangeRequest(
            operation=RowOperation.UPDATE, commit=commit, on_progress=on_progress
        )
        return self._change_rows(RowChange(where=where, new_values=set or {}), request)

    def _change_rows(self, change: RowChange, request: ChangeRequest) -> RowChangeReport:
        return self._commit(lambda: change_rows(self._begun, change, request))

    def abort(self) -> None:
        """End the batch without a change, so that optimizing no longer waits for it.

        Do nothing if the batch has ended.
        """
        if self._is_open:
            self._is_open = False
            self._begun.end()

    def _commit(self, publish: Callable[[], R]) -> R:
        if not self._is_open:
            raise InvalidRequestError(
                f"{self._begun} has ended: a batch makes one commit. Call table.begin() for "
                "another one"
            )
        report = publish()
        if report.replayed:
            self.abort()
        else:
            self._is_open = False
            self._begun.lease.release()
        return report


def find_write(pair: StorePair, commit: CommitId) -> WriteReport | None:
    """Return the report of an earlier write or overwrite; None if it is not found."""
    found = earlier_write(pair, pair.load(), commit)
    return None if found is None else change_report(pair.base.uri, found[1])
