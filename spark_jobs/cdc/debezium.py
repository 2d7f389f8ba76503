# SPDX-License-Identifier: Apache-2.0
"""Debezium's messages: the rows before and after a change, with or without their schema."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.types.types import BYTES, STRING, AtomicType, TypeName, atomic
from spark_jobs.cdc.changes import MessageChanges, SourceTable, field_of, joined_names
from spark_jobs.cdc.declared import Declared, Decoding, declared_of

__all__ = ["Debezium"]

_SCHEMA_FIRST = re.compile(
    rb'(?m)^[ \t]*\{[ \t]*"schema"[ \t]*:[ \t]*(\{.*?\})[ \t]*,[ \t]*"payload"[ \t]*:'
)
_SCHEMA_LAST = re.compile(
    rb'(?m)^[ \t]*\{[ \t]*"payload"[ \t]*:.*,[ \t]*"schema"[ \t]*:[ \t]*(\{.*\})[ \t]*\}[ \t\r]*$'
)
_SOURCE = ("db", "schema", "table")
_SOURCE_FIELD = ("source", pa.struct([(name, pa.string()) for name in _SOURCE]))
_MARK = b"__debezium_unavailable_value"
_NOT_SENT = pa.array(
    [
        _MARK.decode(),
        base64.b64encode(_MARK).decode(),
        f'{{"{_MARK.decode()}":"{_MARK.decode()}"}}',  # of an hstore as JSON
        "b68a35a7-17ad-35b3-af2a-ae46edb4545a",  # of the type uuid[]: the UUID of the mark's MD5
    ]
)
_NUMBERS_NOT_SENT = np.frombuffer(_MARK, np.uint8)
_TRUNCATED = (
    "{path} has a truncate message, which an ingest does not apply: call table.truncate() in "
    "Python, and remove this message and all before it from the source"
)

T = TypeName
_BY_TYPE: dict[str, AtomicType] = {
    "int8": atomic(T.TINYINT),
    "int16": atomic(T.SMALLINT),
    "int32": atomic(T.INT),
    "int64": atomic(T.BIGINT),
    "float": atomic(T.FLOAT),
    "double": atomic(T.DOUBLE),
    "boolean": atomic(T.BOOLEAN),
    "string": STRING,
}
_BY_NAME: dict[str, Declared] = {
    "io.debezium.time.Date": Declared(atomic(T.DATE), Decoding.DAYS),
    "org.apache.kafka.connect.data.Date": Declared(atomic(T.DATE), Decoding.DAYS),
    "io.debezium.time.Timestamp": Declared(atomic(T.TIMESTAMP, 3), Decoding.MILLIS),
    "org.apache.kafka.connect.data.Timestamp": Declared(atomic(T.TIMESTAMP, 3), Decoding.MILLIS),
    "io.debezium.time.MicroTimestamp": Declared(atomic(T.TIMESTAMP, 6), Decoding.MICROS),
    "io.debezium.time.NanoTimestamp": Declared(atomic(T.TIMESTAMP, 9), Decoding.NANOS),
    "io.debezium.time.ZonedTimestamp": Declared(atomic(T.TIMESTAMP_LTZ, 6)),
    "io.debezium.time.ZonedTime": Declared(STRING),
    "io.debezium.time.Interval": Declared(STRING),
    "io.debezium.time.Year": Declared(atomic(T.INT)),
    "io.debezium.time.Time": Declared(atomic(T.TIME, 3), Decoding.TIME_MILLIS),
    "org.apache.kafka.connect.data.Time": Declared(atomic(T.TIME, 3), Decoding.TIME_MILLIS),
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_MOST_DIGITS = "38"
_OPS = pa.array([*"crudtm"])
"""The known letters of ``op``; ``m`` is a message from the source's log, without a row."""


class Debezium:
    """Reads the members ``before``, ``after`` and ``op`` of Debezium's messages, with or without
    ``payload`` around them.
    """

    name = "debezium-json"
    texts_hold_all = False
    has_rows_before = True

    def declared(self, block: bytes) -> Iterator[dict[str, Declared]]:
        """Yield each different schema in the messages of a block, as declarations by column. Raise
        ``UnsupportedError`` for a type that has no equivalent.
        """
        found = [*_SCHEMA_FIRST.findall(block), *_SCHEMA_LAST.findall(block)]
        for text in dict.fromkeys(found):
            for side in json.loads(text).get("fields", ()):
                if side.get("field") in ("before", "after"):
                    yield {each["field"]: _declared(each) for each in side.get("fields", ())}

    def wanted(self, row: pa.StructType, keys: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema that parses messages with rows of the type ``row``."""
        body = [("before", row), ("after", row), ("op", pa.string()), _SOURCE_FIELD]
        return pa.schema([("payload", pa.struct(body)), *body])

    def of_tables(self) -> pa.Schema:
        """Return the Arrow schema that parses only the names of the source tables."""
        return pa.schema([("payload", pa.struct([_SOURCE_FIELD])), _SOURCE_FIELD])

    def tables(self, messages: pa.Table) -> pa.Array | None:
        """Return the name of each message's source table, null for a message without one; None if
        no column of ``messages`` has such names.
        """
        return _source_names(_body(messages))

    def changes(
        self, messages: pa.Table, keys: Sequence[str], only: SourceTable, path: str
    ) -> list[MessageChanges]:
        """Return the changed rows of the messages that ``only`` selects, divided by kind. ``path``
        names the file in errors.

        Raise ``InvalidRequestError`` for an incomplete message, an unknown ``op``, a truncate, or,
        if ``only`` names no table, messages of a second source table.
        """
        body = _body(messages)
        op = field_of(body, "op")
        if op is None or op.null_count:
            raise lake.InvalidRequestError(
                f"{path} has a message without 'op', so it is not a complete message of Debezium: "
                "check the value of 'format', and remove the transform 'unwrap' from the connector"
            )
        meant = only.mask(self.tables(messages), path)
        truncated = pc.equal(op, "t")
        if pc.any(truncated if meant is None else pc.and_(truncated, meant)).as_py():
            raise lake.InvalidRequestError(_TRUNCATED.format(path=path))
        unknown = op.filter(pc.invert(pc.is_in(op, _OPS)))
        if len(unknown):
            raise lake.InvalidRequestError(
                f"{path} has a message of op {unknown[0].as_py()!r}, which is not supported: "
                "remove the message"
            )
        return [*self._of(body, op, meant, path)]

    def _of(
        self, body: pa.Table | pa.StructArray, op: pa.Array, meant: pa.Array | None, path: str
    ) -> Iterator[MessageChanges]:
        positions = np.arange(len(op)) * 2
        before, after = field_of(body, "before"), field_of(body, "after")
        for letters, side, kind, step, needed in (
            ("d", before, "-D", 0, True),
            ("u", before, "-U", 0, False),
            ("u", after, "+U", 1, True),
            ("cr", after, "+I", 1, True),
        ):
            mask = pc.is_in(op, pa.array(list(letters)))
            mask = mask if meant is None else pc.and_(mask, meant)
            if not pc.any(mask).as_py():
                continue
            given = pa.nulls(len(op)) if side is None else side
            lacking = pc.any(pc.and_(mask, pc.is_null(given))).as_py()
            if lacking and needed:
                raise lake.InvalidRequestError(
                    f"{path} has a message of op {' or '.join(map(repr, letters))} without its row "
                    f"{'before' if step == 0 else 'after'!r}: let the source send whole rows, or "
                    "leave the message out"
                )
            mask = pc.and_(mask, pc.is_valid(given))
            if side is not None:
                places = positions[mask.to_numpy(zero_copy_only=False)] + step
                rows = side.filter(mask)
                if kind == "+U":
                    _require_sent(rows, path)
                yield MessageChanges(kind, places, rows)


def _require_sent(rows: pa.StructArray, path: str) -> None:
    """Raise ``InvalidRequestError`` if an updated row has Debezium's placeholder for a value.

    Debezium writes the placeholder if PostgreSQL has not sent the value: PostgreSQL does not send a
    large value that an update did not change.
    """
    for member, values in zip(rows.type, rows.flatten(), strict=True):
        if _has_mark(values):
            raise lake.InvalidRequestError(
                f"{path} has an update without the value of column {member.name!r}: PostgreSQL "
                "does not send large values that have not changed. Let it send whole rows (ALTER "
                "TABLE … REPLICA IDENTITY FULL), and replace this file by one with whole rows"
            )


def _has_mark(values: pa.Array) -> bool:
    """Return True if a value, or a part of a nested value, is the placeholder of Debezium.

    In an array of numbers the placeholder is one number for each byte of its text.
    """
    if pa.types.is_string(values.type):
        return bool(pc.any(pc.is_in(values, _NOT_SENT)).as_py())
    if pa.types.is_struct(values.type):
        return any(map(_has_mark, values.flatten()))
    if not pa.types.is_list(values.type):
        return False
    if not pa.types.is_integer(values.type.value_type):
        return _has_mark(values.flatten())
    size = len(_NUMBERS_NOT_SENT)
    likely = values.filter(pc.equal(pc.list_value_length(values), size)).flatten()
    numbers = likely.to_numpy(zero_copy_only=False).reshape(-1, size)
    return bool((numbers == _NUMBERS_NOT_SENT).all(axis=1).any())


def _body(messages: pa.Table) -> pa.Table | pa.StructArray:
    """Return the messages without the ``payload`` and ``schema`` that may surround them."""
    payload = field_of(messages, "payload")
    return messages if payload is None or payload.null_count == len(payload) else payload


def _source_names(body: pa.Table | pa.StructArray) -> pa.Array | None:
    source = field_of(body, "source")
    if source is None:
        return None
    return joined_names([field_of(source, name) for name in _SOURCE])


def _declared(field: dict[str, object]) -> Declared:
    name, kind = field.get("name"), str(field.get("type"))
    if isinstance(name, str) and name in _BY_NAME:
        return _BY_NAME[name]
    if name == _DECIMAL:
        found = field.get("parameters")
        parameters = found if isinstance(found, dict) else {}
        digits = int(parameters.get("connect.decimal.precision", _MOST_DIGITS))
        scale = int(parameters.get("scale", 0))
        return Declared(atomic(T.DECIMAL, digits, scale), Decoding.BASE64_DECIMAL, scale)
    if isinstance(name, str) and name.startswith("io.debezium.time."):
        setting = "'time.precision.mode' to 'connect'"
        if name.endswith("Duration"):
            setting = "'interval.handling.mode' to 'string'"
        raise lake.UnsupportedError(
            f"column {field.get('field')!r} has type {name}, which is not supported: set "
            f"Debezium's {setting}"
        )
    if kind == "bytes":
        return Declared(BYTES, Decoding.BASE64)
    return declared_of(_BY_TYPE.get(kind))
