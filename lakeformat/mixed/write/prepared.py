# SPDX-License-Identifier: Apache-2.0
"""Files that several processes write by node to the base store or the change store.

One commit publishes the files of all processes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.write.commit_prepared import PublishedOnce, with_unpublished
from lakeformat.iceberg.write.foreign_entries import checked_entries, require_present
from lakeformat.iceberg.write.prepared_writer import PreparedWriter
from lakeformat.iceberg.write.publish import Produce, PublishedChange
from lakeformat.mixed.file_names import FileKind
from lakeformat.mixed.write.message import (
    MixedCommitMessage,
    entries_of_new_files,
    require_names,
    require_one_writer,
)
from lakeformat.mixed.write.write_changes import change_report
from lakeformat.tables.table import offer_arguments
from lakeformat.tables.write_report import WriteReport

__all__ = ["EarlierCommit", "PreparedNodeWriter", "publish_prepared"]

EarlierCommit: TypeAlias = tuple[LoadedMetadata, PublishedChange]
"""The store with an earlier commit of the same identity, and that commit."""


@offer_arguments
class PreparedNodeWriter(PreparedWriter):
    """Writes rows to files by node (hash bucket of keys); one writer must get all rows of a node.

    Nothing is visible before the messages of ``prepare`` are committed. If a call raises an error,
    or a ``with`` block ends with one, the writer deletes its files and cannot be used again.
    """

    @property
    @abstractmethod
    def _given_rows(self) -> int:
        """The number of rows that the writer was given."""

    @abstractmethod
    def _fill(self, data: Any, kinds: Any) -> None:
        """Give all rows of ``data`` to the writer of the files."""

    def write(self, data: Any, kinds: Any = None, *, checked: bool = False) -> None:
        """Add rows: a pyarrow, pandas or polars object, or an iterable of such objects.

        The last change of a key counts. ``kinds`` is the name of a column, or has one kind for each
        row, as in ``Table.write``; a writer for an overwrite refuses ``kinds``. ``checked`` has no
        effect, because this writer checks all rows. Raise ``InvalidRequestError`` for rows that do
        not fit the table.
        """
        self._require_unfinished()
        try:
            self._fill(data, kinds)
        except BaseException:
            self.abort()
            raise

    def _message(self, entries: pa.Table) -> MixedCommitMessage:
        return MixedCommitMessage(
            table=self._uri,
            table_uuid=self._uuid,
            base_snapshot=self._base,
            entries=entries,
            given_rows=self._given_rows,
        )


def publish_prepared(
    handle: TableHandle,
    store: LoadedMetadata,
    table: str,
    messages: Sequence[MixedCommitMessage],
    *,
    earlier: EarlierCommit | None,
    kinds: Sequence[FileKind],
    transaction: int,
    publish: Callable[[pa.Table, Callable[[Produce], Produce]], PublishedChange],
) -> WriteReport:
    """Publish the files of messages in one commit of a store.

    If ``earlier`` is given, the commit was published before, and this call publishes nothing.
    ``publish`` makes the commit. Its first argument has the manifest entries of the files. Its
    second argument is a function that adds a check to the change; the check refuses files that are
    published already. After an error the files are kept.
    """
    entries = checked_entries(store, table, messages)
    if earlier is not None:
        found, published = earlier
        return with_unpublished(found, change_report(table, published), published.snapshot, entries)
    require_names(messages, table, kinds, transaction)
    require_one_writer(messages, table)
    added = entries_of_new_files(store, table, entries)
    require_present(store, table, entries)
    bases = {each.base_snapshot for each in messages}
    published = publish(added, lambda change: PublishedOnce(table, change, bases, entries))
    report = change_report(table, published)
    if not published.is_replayed:
        return report
    return with_unpublished(handle.load(), report, published.snapshot, entries)
