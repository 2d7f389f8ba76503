# SPDX-License-Identifier: Apache-2.0
"""Canal's messages: each may have several rows, with all values as text and with the types of
MySQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.types.types import STRING, DataType, TypeName, atomic
from spark_jobs.cdc.changes import MessageChanges, OldRows, SourceTable, field_of
from spark_jobs.cdc.declared import Declared, declared_of
from spark_jobs.cdc.maxwell import TypedMessages, keys_of, row_changes
from spark_jobs.cdc.old_nulls import OLD_NULLS, marks_of

__all__ = ["Canal", "beside"]

T = TypeName
_KINDS = ["INSERT", "UPDATE", "DELETE"]
_NO_ROWS = [
    "ALTER",
    "CINDEX",
    "CREATE",
    "DINDEX",
    "ERASE",
    "GTID",
    "MHEARTBEAT",
    "QUERY",
    "RENAME",
    "XACOMMIT",
    "XAROLLBACK",
]
"""The kinds of messages without rows in Canal's protocol, except TRUNCATE."""
_TYPE = re.compile(r"([a-z]+)(?:\((\d+)(?:,\s*(\d+))?\))?( unsigned)?")
_PLAIN: dict[str, DataType] = {
    "tinyint": atomic(T.TINYINT),
    "smallint": atomic(T.SMALLINT),
    "mediumint": atomic(T.INT),
    "int": atomic(T.INT),
    "integer": atomic(T.INT),
    "bigint": atomic(T.BIGINT),
    "float": atomic(T.FLOAT),
    "double": atomic(T.DOUBLE),
    "boolean": atomic(T.BOOLEAN),
    "date": atomic(T.DATE),
    "year": atomic(T.INT),
}
_UNSIGNED: dict[str, DataType] = {
    "tinyint": atomic(T.SMALLINT),
    "smallint": atomic(T.INT),
    "mediumint": atomic(T.INT),
    "int": atomic(T.BIGINT),
    "integer": atomic(T.BIGINT),
    "bigint": atomic(T.DECIMAL, 20, 0),
}
_TEXTS = {"text", "tinytext", "mediumtext", "longtext", "json", "enum", "set", "char", "varchar"}
_TIMES = {"datetime": T.TIMESTAMP, "timestamp": T.TIMESTAMP}


class Canal(TypedMessages):
    """Reads the members ``data``, ``old`` and ``type`` of Canal's messages.

    DDL messages are ignored, because later rows show new columns; a TRUNCATE is refused.
    """

    name = "canal-json"
    program = "Canal"
    texts_hold_all = True
    has_rows_before = False

    def declared(self, block: bytes) -> Iterator[dict[str, Declared]]:
        """Yield each different set of MySQL types in the messages of a block, as declarations by
        column. Raise ``UnsupportedError`` for a type that has no equivalent.
        """
        for text in dict.fromkeys(re.findall(rb'"mysqlType"\s*:\s*(\{[^{}]*\})', block)):
            types = json.loads(text).items()
            yield {name: declared_of(_mysql_type(name, each)) for name, each in types}

    def wanted(self, row: pa.StructType, keys: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema that parses messages with rows of the type ``row``."""
        old = keys_of(row, keys)
        lists = [("data", row), ("old", old), (OLD_NULLS, marks_of(old))]
        rows = [(name, pa.list_(each)) for name, each in lists]
        return pa.schema([*rows, ("isDdl", pa.bool_()), ("type", pa.string()), *self.of_tables()])

    def changes(
        self, messages: pa.Table, keys: Sequence[str], only: SourceTable, path: str
    ) -> list[MessageChanges]:
        """Return the changed rows of the messages that ``only`` selects, divided by kind. ``path``
        names the file in errors.

        Raise ``InvalidRequestError`` for an incomplete message, a TRUNCATE, an unknown ``type``,
        or, if ``only`` names no table, messages of a second source table.
        """
        kind, data = self._kinds(messages, path), field_of(messages, "data")
        meant = only.mask(self.tables(messages), path)
        truncated = pc.equal(kind, "TRUNCATE")
        if pc.any(truncated if meant is None else pc.and_(truncated, meant)).as_py():
            raise lake.InvalidRequestError(
                f"{path} has a TRUNCATE message, which an ingest does not apply: call "
                "table.truncate() in Python, and remove this message and all before it from the "
                "source"
            )
        changes = pa.repeat(True, len(kind)) if meant is None else meant
        if (is_ddl := field_of(messages, "isDdl")) is not None:
            changes = pc.and_(changes, pc.invert(pc.fill_null(is_ddl, False)))
        strange = pc.invert(pc.is_in(kind, pa.array([*_KINDS, *_NO_ROWS])))
        if len(unknown := kind.filter(pc.and_(strange, changes))):
            raise lake.InvalidRequestError(
                f"{path} has a message of type {unknown[0].as_py()!r}, which is not supported: "
                "remove the message"
            )
        mask = pc.and_(pc.is_in(kind, pa.array(_KINDS)), changes)
        if data is None or not pc.any(mask).as_py():
            return []
        kind, data = kind.filter(mask), data.filter(mask)
        old = (field_of(messages, name) for name in ("old", OLD_NULLS))
        olds = (None if each is None else beside(each.filter(mask), data, path) for each in old)
        return row_changes(
            kind.take(pc.list_parent_indices(data)),
            data.flatten(),
            OldRows(*olds),
            keys,
            path,
        )


def beside(old: pa.ListArray, data: pa.ListArray, path: str) -> pa.StructArray:
    """Return the old row for each new row; null if the message has no old rows.

    Raise ``InvalidRequestError`` if a message has old rows, but not one for each new row.
    """
    counts = pc.list_value_length(data)
    has = pc.fill_null(pc.greater(pc.list_value_length(old), 0), False)
    same = pc.or_(pc.invert(has), pc.fill_null(pc.equal(pc.list_value_length(old), counts), False))
    if not pc.all(same).as_py():
        raise lake.InvalidRequestError(
            f"{path} has a message with a different number of old and new rows: remove the message"
        )
    given = old.filter(has).flatten()
    is_given = has.take(pc.list_parent_indices(data))
    places = pc.subtract(pc.cumulative_sum(is_given.cast(pa.int64())), 1)
    return given.take(pc.if_else(is_given, places, None))


def _mysql_type(column: str, text: object) -> DataType | None:
    """Return the type for a column that a message declares with MySQL's type ``text``.

    Return None if ``text`` is not a string that starts with the name of a type. Raise
    ``UnsupportedError`` for a name that has no equivalent. MySQL's type TIMESTAMP becomes TIMESTAMP
    without a time zone: its texts are in the time zone of the session.
    """
    if not isinstance(text, str):
        return None
    found = _TYPE.match(text.lower().strip())
    if found is None:
        return None
    name, first, second = found[1], found[2], found[3]
    if name == "tinyint" and first == "1":
        return atomic(T.BOOLEAN)
    if found[4] and name in _UNSIGNED:
        return _UNSIGNED[name]
    if name in _PLAIN:
        return _PLAIN[name]
    if name in ("decimal", "numeric"):
        return atomic(T.DECIMAL, int(first or 10), int(second or 0))
    if name in _TIMES:
        return atomic(_TIMES[name], int(first or 0))
    if name in _TEXTS:
        return atomic(T.VARCHAR, int(first)) if name == "varchar" and first else STRING
    raise lake.UnsupportedError(
        f"column {column!r} has the MySQL type {text}, which is not supported in Canal's messages: "
        "leave the column out of the messages"
    )
