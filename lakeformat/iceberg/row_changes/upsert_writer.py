# SPDX-License-Identifier: Apache-2.0
"""Writes changes by key to files, which are published later, in this process or in another one.

All changes of a key must be written by one writer, because only the last change counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.row_changes.given_changes import (
    GivenChanges,
    NumberedRows,
    keys_of,
    last_changes,
    with_kinds,
)
from lakeformat.iceberg.row_changes.given_keys import key_fields
from lakeformat.iceberg.write.message import IcebergCommitMessage, with_keys
from lakeformat.iceberg.write.prepared_writer import PreparedWriter
from lakeformat.rows.row_kinds import Kinds
from lakeformat.tables.table import offer_arguments

__all__ = ["UpsertWriter"]


@offer_arguments
class UpsertWriter(PreparedWriter):
    """Writes rows that replace stored rows, and keys of rows to delete.

    Rows with kinds are in memory until ``prepare``.
    """

    def __init__(self, handle: TableHandle, by: Sequence[str]) -> None:
        super().__init__(handle)
        self._fields = key_fields(self._schema, by)
        self._held: list[tuple[NumberedRows, Kinds]] = []
        self._changes = GivenChanges([])

    def write(self, data: Any, kinds: Any = None, *, checked: bool = False) -> None:
        """Add rows; with ``kinds`` each row is a change, and the last change of each key counts.

        ``kinds`` is the name of a column, or has one kind for each row, as in ``Table.upsert``.
        ``checked`` has no effect. Raise ``InvalidRequestError`` for wrong kinds and, without
        ``kinds``, for rows that do not fit; then the writer is aborted. With ``kinds`` the rows
        are checked by ``prepare``.
        """
        if kinds is None:
            super().write(data, checked=checked)
            return
        self._require_unfinished()
        try:
            self._held += with_kinds(self._schema, data, kinds)
        except BaseException:
            self.abort()
            raise

    def prepare(self) -> list[IcebergCommitMessage]:
        """Finish the files; return the messages, which any process may commit.

        Raise ``InvalidRequestError`` if a row with a kind does not fit the table, or has a null in
        its key; then the writer is aborted.
        """
        self._require_unfinished()
        try:
            self._changes = last_changes(self._schema, self._fields, self._held)
            self._held = []
            for rows in self._changes.rows(self._schema).to_batches():
                self._writer.write(rows)
        except BaseException:
            self.abort()
            raise
        return super().prepare()

    def _messages_of(self, entries: pa.Table) -> list[IcebergCommitMessage]:
        keys = keys_of(self._schema, self._fields, self._changes.deleted)
        if not len(entries) and not len(keys):
            return []
        return [with_keys(self._message(entries), keys)]
