# SPDX-License-Identifier: Apache-2.0
"""A writer whose files are published later, in this process or in another one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.refused_arguments import KIND, REFUSED_ARGUMENTS
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.iceberg.write.table_writer import TableWriter
from lakeformat.rows.batches import to_batches
from lakeformat.tables.refused_arguments import refuse_arguments
from lakeformat.tables.table import offer_arguments

__all__ = ["PreparedWriter"]


@offer_arguments
class PreparedWriter:
    """Writes rows of any partitions. Use each writer once and in one thread.

    Nothing is visible before the messages of ``prepare`` are committed. If a call raises an
    exception, or a ``with`` block ends with one, the writer deletes its files and cannot be used
    again.
    """

    def __init__(self, handle: TableHandle) -> None:
        handle.pointer.require_writable()
        loaded = handle.load()
        head = loaded.metadata.references.get(handle.branch)
        self._base = 0 if head is None else head.snapshot_id
        self._uri, self._uuid = handle.uri, loaded.metadata.table_uuid or ""
        self._schema = loaded.metadata.schema
        self._writer = TableWriter(loaded, handle.environment)
        self._is_finished = False

    def write(self, data: Any, kinds: Any = None, *, checked: bool = False) -> None:
        """Add rows: a pyarrow, pandas or polars object, or an iterable of such objects.

        ``checked`` has no effect, because this writer checks all rows. Raise
        ``InvalidRequestError`` for rows that do not fit the columns, and ``UnsupportedError`` for
        ``kinds``.
        """
        self._require_unfinished()
        try:
            refuse_arguments(
                REFUSED_ARGUMENTS, "write", {"kinds": kinds}, kind=KIND, location=self._uri
            )
            for batch in to_batches(data):
                self._writer.write(batch)
        except BaseException:
            self.abort()
            raise

    def prepare(self) -> list[IcebergCommitMessage]:
        """Finish the files; return the messages, which any process may commit.

        Without rows there is no message.
        """
        self._require_unfinished()
        try:
            entries = self._writer.finish()
        except BaseException:
            self.abort()
            raise
        self._is_finished = True
        return self._messages_of(entries)

    def abort(self) -> None:
        """Delete the files. Call it only if it is certain that no commit has published them."""
        self._is_finished = True
        self._writer.discard()

    def __enter__(self) -> PreparedWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self.abort()

    def _messages_of(self, entries: pa.Table) -> list[IcebergCommitMessage]:
        return [self._message(entries)] if len(entries) else []

    def _message(self, entries: pa.Table) -> IcebergCommitMessage:
        return IcebergCommitMessage(
            table=self._uri, table_uuid=self._uuid, base_snapshot=self._base, entries=entries
        )

    def _require_unfinished(self) -> None:
        if self._is_finished:
            raise InvalidRequestError("this writer is finished; create a new writer for more rows")
