# SPDX-License-Identifier: Apache-2.0
"""Checks text files that Arrow would misread, or would refuse although they can be read."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError
from lakeformat.files.foreign.dialect import TextDialect
from lakeformat.types.arrow_types import from_arrow_type
from lakeformat.types.type_text import type_to_sql

__all__ = [
    "cast_text",
    "first_refused",
    "not_utf_8",
    "read_growing",
    "require_closed_quotes",
    "times_as_text",
    "type_name",
]

BLOCK_BYTES = 8 << 20
"""The initial size of Arrow's blocks, in bytes. A record must fit into one block, so for longer
records the blocks grow.
"""
_MOST_BLOCK_BYTES = (1 << 31) - 1

Batches: TypeAlias = Iterator[pa.RecordBatch]
OpenReader: TypeAlias = Callable[[int], AbstractContextManager[Batches]]
"""A function that opens a file from its start; its argument is the size of Arrow's blocks in
bytes.
"""


def cast_text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values read from text as values of the type ``kind``, including times of day.

    Raise ``ArrowInvalid`` for a value that does not fit.
    """
    if not (pa.types.is_time(kind) and pa.types.is_string(values.type)):
        return values.cast(kind)
    # A cast to a timestamp refuses surplus digits; a cast to a time of day would cut them off.
    moments = pc.binary_join_element_wise("1970-01-01T", values, "")
    return moments.cast(pa.timestamp(kind.unit)).cast(kind)


def first_refused(count: int, is_refused: Callable[[int, int], bool]) -> int:
    """Return the index of the first refused row among ``count`` rows; -1 if none is refused.

    ``is_refused(start, size)`` returns True if at least one of the ``size`` rows from index
    ``start`` on is refused.
    """
    first = 0
    if not count or not is_refused(0, count):
        return -1
    while count > 1:  # bisect: the first refused row is one of these
        half = count // 2
        if is_refused(first, half):
            count = half
        else:
            first, count = first + half, count - half
    return first


def times_as_text(columns: pa.Schema) -> pa.Schema:
    """Return the columns with STRING in place of dates and times, which ``cast_text`` parses later.

    Arrow's JSON reader has no dates, and drops or invents time zones.
    """
    return pa.schema(_time_as_text(field) for field in columns)


def type_name(kind: pa.DataType) -> str:
    """Return the SQL name of an Arrow type."""
    return type_to_sql(from_arrow_type(kind))


def not_utf_8(path: str, reason: object) -> InvalidRequestError:
    """Return the error for a file that is not in UTF-8; ``reason`` names the row or column, or is
    the decoder's error.
    """
    return InvalidRequestError(
        f"cannot read {path}: it is not UTF-8 ({reason}): set encoding to that of the file, such "
        "as latin-1"
    )


def require_closed_quotes(path: str, dialect: TextDialect) -> None:
    """Raise ``InvalidRequestError`` if a CSV file has a quote that is never closed.

    Arrow would read the rest of the file as one value.
    """
    if not dialect.quote or not os.path.getsize(path):
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(dialect.quote.encode()) < 0:
            return
        for found in _quoted(dialect).finditer(content):
            if found[1] == b"":
                line = content[: found.start() + 1].count(b"\n") + 1
                raise InvalidRequestError(
                    f"{path}: the quote that opens in line {line} is never closed; close it, "
                    "double each quote inside a quoted value, or give another quote character"
                )


def read_growing(open_reader: OpenReader) -> Batches:
    """Yield the batches of a file; if a record is longer than a block, read on with larger
    blocks.
    """
    size, given = BLOCK_BYTES, 0
    while True:
        try:
            skip = given
            with open_reader(size) as batches:
                for batch in batches:
                    fresh = batch.slice(min(skip, batch.num_rows))
                    skip -= batch.num_rows - fresh.num_rows
                    given += fresh.num_rows
                    if fresh.num_rows or not given:
                        yield fresh
            return
        except pa.ArrowInvalid as reason:
            if "straddling object" not in str(reason) or size == _MOST_BLOCK_BYTES:
                raise
            size = min(size * 4, _MOST_BLOCK_BYTES)


def _quoted(dialect: TextDialect) -> re.Pattern[bytes]:
    """Return a pattern that finds quoted values as Arrow does.

    A quote begins a quoted value only at the start of a field.
    """
    quote, delimiter = (re.escape(each.encode()) for each in (dialect.quote, dialect.delimiter))
    inside, outside = b"[^" + quote + b"]++|" + quote + quote, b""
    if dialect.escape:
        escape = re.escape(dialect.escape.encode())
        inside = b"[^" + quote + escape + b"]++|" + quote + quote + b"|(?s:" + escape + b".)"
        outside = b"(?s:" + escape + b".)|"
    start = rb"(?:\A(?:\xef\xbb\xbf)?|[" + delimiter + rb"\r\n])" + quote
    return re.compile(outside + start + b"(?:" + inside + b")*+(" + quote + rb"|\Z)")


def _time_as_text(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_temporal(kind):
        return field.with_type(pa.string())
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_time_as_text(kind.value_field)))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_time_as_text(part) for part in kind]))
    return field
