# SPDX-License-Identifier: Apache-2.0
"""The staged results of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.reachable_files import manifests_of
from lakeformat.iceberg.staged.staged_results import staged_results
from lakeformat.iceberg.write.append import earlier_commit
from lakeformat.iceberg.write.commit_prepared import commit_messages, delete_prepared
from lakeformat.iceberg.write.foreign_entries import checked_entries, find_published
from lakeformat.iceberg.write.message import (
    IcebergCommitMessage,
    check_messages,
    key_of_messages,
)
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.staged.table_staged import AnyTableStaged
from lakeformat.tables.table import offer_arguments

if TYPE_CHECKING:
    from lakeformat.iceberg.read.scan import Scan
    from lakeformat.rows.conditions.filter import Where

__all__ = ["TableStaged"]


@offer_arguments
class TableStaged(AnyTableStaged[IcebergCommitMessage, WriteReport]):
    """The staged results of one table or branch."""

    def __init__(self, handle: TableHandle) -> None:
        super().__init__(handle.uri, handle.environment, staged_results(handle))
        self._handle = handle

    def scan(
        self,
        addresses: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        where: Where | None = None,
        with_published: bool = False,
    ) -> Scan:
        """Scan the rows of staged results; readers of the table do not see these rows yet.

        ``with_published=True`` adds the rows of the newest snapshot, so the result is the table
        after the commit. In that case, raise ``UnsupportedError`` if the staged rows replace
        published rows by their keys. Raise ``NotFoundError`` if a result does not exist, and
        ``InvalidRequestError`` for an unknown column.
        """
        from lakeformat.iceberg.read.plan import TableState
        from lakeformat.iceberg.read.scan import Scan
        from lakeformat.iceberg.read.where import row_filter
        from lakeformat.iceberg.staged.staged_rows import staged_files

        results, loaded = self.named(addresses), self._handle.load()
        metadata = loaded.metadata
        head = metadata.references.get(self._handle.branch) if with_published else None
        snapshot = None if head is None else metadata.snapshot(head.snapshot_id)
        state = TableState(loaded.places, metadata, snapshot, metadata.schema)
        asked = row_filter(metadata, state.schema, where, None)
        files = staged_files(loaded, state, results, with_published=with_published)
        return Scan(state, columns, asked, unpublished=files)

    def _checked(self, messages: Iterable[IcebergCommitMessage]) -> Sequence[IcebergCommitMessage]:
        return check_messages(messages)

    def _require_own(self, messages: Sequence[IcebergCommitMessage]) -> None:
        # If the table was opened by a metadata file, newer snapshots that use the files are
        # unknown.
        self._handle.pointer.require_writable()
        checked_entries(self._handle.load(), self._handle.uri, messages)

    def _where_published(self, messages: Sequence[IcebergCommitMessage]) -> str | None:
        loaded = self._handle.load()
        entries = checked_entries(loaded, self._handle.uri, messages)
        manifests = manifests_of(loaded, loaded.metadata.snapshots).values()
        found = find_published(loaded, entries, manifests)
        return None if found is None else f"{found} is in the table already"

    def _find_commit(self, commit: CommitId) -> WriteReport | None:
        found = earlier_commit(self._handle, self._handle.load(), commit)
        return None if found is None else write_report(self._handle.uri, found)

    def _commit(self, messages: Sequence[IcebergCommitMessage], commit: CommitId) -> WriteReport:
        if (key := key_of_messages(messages)) is not None:
            from lakeformat.iceberg.row_changes.prepared_upsert import upsert_messages

            return upsert_messages(
                self._handle, messages, key, executor=None, commit=commit, properties=None
            )
        return commit_messages(self._handle, messages, None, commit=commit, properties=None)

    def _delete(self, messages: Sequence[IcebergCommitMessage]) -> Sequence[str]:
        loaded = self._handle.load()
        return delete_prepared(loaded, checked_entries(loaded, self._handle.uri, messages))
