# SPDX-License-Identifier: Apache-2.0
"""Reads files of JSON lines in blocks that Arrow parses at once."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.json

import lakeformat as lake

__all__ = ["blocks_of", "lines_where", "parse_block"]

_BLOCK_BYTES = 16 << 20
_MARK = b"\xef\xbb\xbf"
_NO_OBJECT = re.compile(rb"(?m)^(?![ \t]*\{)(?=.*\S).*|^.*[^\s}][ \t\r]*$")


def blocks_of(path: str) -> Iterator[bytes]:
    """Yield blocks of whole lines, without empty lines and tombstones; raise
    ``InvalidRequestError`` for a line that is not a JSON object.

    Lines are checked first, because Arrow's JSON reader crashes on a line that is not a JSON
    object.
    """
    rest = b""
    with open(path, "rb") as file:
        is_first = True
        while chunk := file.read(_BLOCK_BYTES):
            chunk = chunk.removeprefix(_MARK) if is_first else chunk
            is_first = False
            head, line_end, tail = (rest + chunk).rpartition(b"\n")
            rest = tail
            if block := _objects(head + line_end, path):
                yield block
    if block := _objects(rest, path):
        yield block


def parse_block(block: bytes, rows: pa.Schema | None = None) -> pa.Table:
    """Return the lines of a block as a table with the schema ``rows``; None infers the schema.

    A block is parsed at once, so that a column with two types in different lines is an error.
    """
    options = pyarrow.json.ParseOptions(
        explicit_schema=rows,
        unexpected_field_behavior="infer" if rows is None else "ignore",
    )
    read = pyarrow.json.ReadOptions(block_size=len(block) + 1)
    return pyarrow.json.read_json(io.BytesIO(block), read_options=read, parse_options=options)


def lines_where(block: bytes, mask: pa.Array, path: str) -> bytes:
    """Return the lines for which ``mask``, a boolean for each message, is true; ``path`` is for
    errors.
    """
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == ord("\n")) + 1
    if not len(ends) or ends[-1] < len(data):
        ends = np.append(ends, len(data))
    if len(ends) != len(mask):
        raise lake.InvalidRequestError(
            f"cannot read {path}: {len(ends)} lines hold {len(mask)} messages. Write each message "
            "to a line of its own"
        )
    lengths = np.diff(ends, prepend=0)
    kept: bytes = data[np.repeat(mask.to_numpy(zero_copy_only=False), lengths)].tobytes()
    return kept


def _objects(block: bytes, path: str) -> bytes:
    # A tombstone of Kafka only repeats the deletion of the message before it.
    lines = b"\n".join(line for line in block.split(b"\n") if line.strip() not in (b"", b"null"))
    if found := _NO_OBJECT.search(lines):
        shown = found[0].strip()[:60].decode(errors="replace")
        raise lake.InvalidRequestError(
            f"cannot read {path}: the line {shown!r} is not a JSON object. Write one message, a "
            "JSON object, to each line"
        )
    return lines
