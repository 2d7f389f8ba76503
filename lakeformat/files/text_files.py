"""Files of text lines, CSV and JSON, where Arrow would misread one or give up without need."""

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

__all__ = ["BLOCK_BYTES", "cast_text", "read_growing", "require_closed_quotes", "require_objects"]

BLOCK_BYTES = 8 << 20
"""A record must be inside one block; where one is longer, blocks grow."""
_MOST_BLOCK_BYTES = (1 << 31) - 1

Batches: TypeAlias = Iterator[pa.RecordBatch]
OpenReader: TypeAlias = Callable[[int], AbstractContextManager[Batches]]
"""Opens a file from its start, with blocks of so many bytes."""

# As Arrow reads it: quotes have a meaning at the start of a field, and behind the closing one the
# field goes on without.
_QUOTED = re.compile(rb'(?:\A(?:\xef\xbb\xbf)?|[,\r\n])"(?:[^"]++|"")*+("|\Z)')
_MARK = b"\xef\xbb\xbf"


def cast_text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a type JSON has as those of a column, times of day among them."""
    if not (pa.types.is_time(kind) and pa.types.is_string(values.type)):
        return values.cast(kind)
    # Digits that do not fit are an error in timestamps, and would be cut off in times of day.
    moments = pc.binary_join_element_wise("1970-01-01T", values, "")
    return moments.cast(pa.timestamp(kind.unit)).cast(kind)


def require_objects(path: str) -> None:
    """Refuse a JSON file with a line that is no object: Arrow makes rows of null, or crashes."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            text = (line.removeprefix(_MARK) if number == 1 else line).strip()
            if text and not (text.startswith(b"{") and text.endswith(b"}")):
                shown = text[:40].decode(errors="replace")
                raise InvalidRequestError(
                    f"line {number} of {path} is {shown!r}: each line is one JSON object, "
                    'as {"k": 1}'
                )


def require_closed_quotes(path: str) -> None:
    """Refuse a CSV file whose last quote is never closed: Arrow makes one text of all behind it."""
    if not os.path.getsize(path):
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(b'"') < 0:
            return
        for found in _QUOTED.finditer(content):
            if not found[1]:
                line = content[: found.start() + 1].count(b"\n") + 1
                raise InvalidRequestError(
                    f"{path}: the quote that opens in line {line} is never closed; close it, and "
                    'write a quote inside a quoted value twice, as ""'
                )


def read_growing(open_reader: OpenReader, block_bytes: int = BLOCK_BYTES) -> Batches:
    """The batches of a file; if a record is longer than a block, again with larger blocks."""
    size, given = block_bytes, 0
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
