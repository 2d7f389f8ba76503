# SPDX-License-Identifier: Apache-2.0
"""The staged results of a Paimon table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.earlier_result import find_commit
from lakeformat.paimon.commit.new_files import NewFileCheck
from lakeformat.paimon.commit.written_files import delete_written, written_paths
from lakeformat.paimon.deletion.abort import FilesElsewhere
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage, check_messages
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.metadata.staged_results import staged_results
from lakeformat.paimon.staged.order import require_order
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.staged.files import StagedResult
from lakeformat.tables.staged.table_staged import AnyTableStaged
from lakeformat.tables.table import offer_arguments

if TYPE_CHECKING:
    from lakeformat.paimon.read.scan import Scan
    from lakeformat.rows.conditions.filter import Where

__all__ = ["TableStaged"]


class Commit(Protocol):
    """The method ``Table.commit``, as this module calls it."""

    def __call__(self, messages: Iterable[CommitMessage], *, commit: CommitId) -> CommitReport:
        """Publish messages as a snapshot."""


@offer_arguments
class TableStaged(AnyTableStaged[CommitMessage, CommitReport]):
    """The staged results of one table, or of one of its branches."""

    def __init__(self, handle: TableHandle, commit: Commit) -> None:
        files = staged_results(handle.storage, handle.layout)
        super().__init__(handle.uri, handle.environment, files)
        self._handle, self._publish_messages = handle, commit

    def scan(
        self,
        addresses: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        with_published: bool = False,
    ) -> Scan:
        """Scan the rows of staged results, which readers of the table do not see yet.

        Rows of one key, deletes included, are merged as by a compaction. ``with_published=True``
        also merges the staged rows with those of the newest snapshot: the result is the table after
        a commit and a compaction. Raise UnsupportedError if a staged result replaces files of the
        table.
        """
        from lakeformat.paimon.staged.scan import scan_staged

        results, after = self.named(addresses), None
        if with_published:
            after = latest_snapshot(self._handle.storage, self._handle.layout)
        return scan_staged(self._handle, results, columns, where, after=after)

    def _checked(self, messages: Iterable[CommitMessage]) -> Sequence[CommitMessage]:
        return check_messages(messages)

    def _require_own(self, messages: Sequence[CommitMessage]) -> None:
        for _ in written_paths(self._handle, messages):
            pass  # refuses files outside of the table

    def _where_published(self, messages: Sequence[CommitMessage]) -> str | None:
        handle = self._handle
        try:
            NewFileCheck(handle, messages).check(latest_snapshot(handle.storage, handle.layout))
        except InvalidRequestError as reason:
            return str(reason).rpartition(": ")[0]
        return None

    def _find_elsewhere(
        self, messages: Sequence[CommitMessage]
    ) -> Callable[[Sequence[CommitMessage]], str | None]:
        return FilesElsewhere(self._handle, messages).reason

    def _find_commit(self, commit: CommitId) -> CommitReport | None:
        return find_commit(self._handle, commit)

    def _require_order(self, results: Sequence[StagedResult[CommitMessage]]) -> None:
        require_order(self._handle, results, self._files.address)

    def _commit(self, messages: Sequence[CommitMessage], commit: CommitId) -> CommitReport:
        return self._publish_messages(messages, commit=commit)

    def _delete(self, messages: Sequence[CommitMessage]) -> Sequence[str]:
        return delete_written(self._handle, messages)
