# SPDX-License-Identifier: Apache-2.0
"""Maxwell's messages: a message of data has one row, and for an update the old values of the
changed columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from spark_jobs.cdc.changes import (
    MessageChanges,
    OldRows,
    SourceTable,
    field_of,
    joined_names,
    updates_of,
)
from spark_jobs.cdc.declared import Declared
from spark_jobs.cdc.old_nulls import OLD_NULLS, marks_of

__all__ = ["Maxwell", "TypedMessages", "keys_of", "row_changes"]

_TABLE_NAMES = pa.schema([("database", pa.string()), ("table", pa.string())])

_INSERTS = ["insert", "bootstrap-insert"]
_NO_ROWS = [
    "bootstrap-start",
    "bootstrap-complete",
    "table-create",
    "table-alter",
    "table-drop",
    "database-create",
    "database-alter",
    "database-drop",
]


class TypedMessages:
    """The base of Canal's and Maxwell's messages, which have the members ``type``, ``database`` and
    ``table``.
    """

    program: str
    """The name of the program that writes the messages, for errors."""

    def of_tables(self) -> pa.Schema:
        """Return the Arrow schema that parses only the names of database and table."""
        return _TABLE_NAMES

    def tables(self, messages: pa.Table) -> pa.Array | None:
        """Return each message's source table as ``database.table``, null for a message without
        these names; None if no column of ``messages`` has such names.
        """
        return joined_names([field_of(messages, name) for name in _TABLE_NAMES.names])

    def _kinds(self, messages: pa.Table, path: str) -> pa.Array:
        kind = field_of(messages, "type")
        if kind is None or kind.null_count:
            raise lake.InvalidRequestError(
                f"{path} has a line without 'type', so it is not a message of {self.program}: "
                "check the value of 'format'"
            )
        return kind


class Maxwell(TypedMessages):
    """Reads the members ``data``, ``old`` and ``type`` of Maxwell's messages."""

    name = "maxwell-json"
    program = "Maxwell"
    texts_hold_all = False
    has_rows_before = False

    def declared(self, block: bytes) -> Iterator[dict[str, Declared]]:
        """Yield nothing, because Maxwell's messages declare no types."""
        return iter(())

    def wanted(self, row: pa.StructType, keys: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema that parses messages with rows of the type ``row``."""
        old = keys_of(row, keys)
        rows = [("data", row), ("old", old), (OLD_NULLS, marks_of(old))]
        return pa.schema([*rows, ("type", pa.string()), *self.of_tables()])

    def changes(
        self, messages: pa.Table, keys: Sequence[str], only: SourceTable, path: str
    ) -> list[MessageChanges]:
        """Return the changed rows of the messages that ``only`` selects, divided by kind. ``path``
        names the file in errors.

        Raise ``InvalidRequestError`` for an incomplete message, an unknown ``type``, or, if
        ``only`` names no table, messages of a second source table.
        """
        kind, data = self._kinds(messages, path), field_of(messages, "data")
        meant = only.mask(self.tables(messages), path)
        known = pa.array([*_INSERTS, "update", "delete"])
        strange = kind.filter(pc.invert(pc.is_in(kind, pa.array([*known.to_pylist(), *_NO_ROWS]))))
        if len(strange):
            raise lake.InvalidRequestError(
                f"{path} has a message of type {strange[0].as_py()!r}, which is not supported: "
                "remove the message"
            )
        rows = pc.is_in(kind, known)
        mask = rows if meant is None else pc.and_(rows, meant)
        if data is None or not pc.any(mask).as_py():
            return []
        old = OldRows(field_of(messages, "old"), field_of(messages, OLD_NULLS))
        return row_changes(kind.filter(mask), data.filter(mask), old.filter(mask), keys, path)


def keys_of(row: pa.StructType, keys: Sequence[str]) -> pa.StructType:
    """Return the type of old rows with only the columns ``keys``, because no other column is
    read.
    """
    return pa.struct([each for each in row if each.name in keys])


def row_changes(
    kind: pa.Array,
    rows: pa.StructArray,
    old: OldRows,
    keys: Sequence[str],
    path: str,
) -> list[MessageChanges]:
    """Return the rows of Canal's or Maxwell's messages divided by kind; ``kind`` has the ``type``
    of each row's message.

    Raise ``InvalidRequestError``, which names ``path``, for a message without its row.
    """
    if rows.null_count:
        raise lake.InvalidRequestError(
            f"{path} has a message without its row ('data'): remove the message"
        )
    words, positions = pc.utf8_lower(kind), np.arange(len(rows)) * 2

    def part(letters: list[str]) -> tuple[pa.Array, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        mask = pc.is_in(words, pa.array(letters))
        return mask, positions[mask.to_numpy(zero_copy_only=False)]

    inserted, places = part(_INSERTS)
    found = [MessageChanges("+I", places + 1, rows.filter(inserted))]
    deleted, places = part(["delete"])
    found.append(MessageChanges("-D", places, rows.filter(deleted)))
    updated, places = part(["update"])
    return [*found, *updates_of(rows.filter(updated), old.filter(updated), places, keys)]
