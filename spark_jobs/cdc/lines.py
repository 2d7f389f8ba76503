# SPDX-License-Identifier: Apache-2.0
"""Reads files of JSON lines in blocks, each of which Arrow parses in one call."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.json

import lakeformat as lake
from lakeformat.files.foreign.json_lines import object_blocks
from lakeformat.types.count_text import counted

__all__ = ["blocks_of", "lines_where", "parse_block"]

_TOMBSTONE = b"null"
"""A message of Kafka without a value, which only repeats the delete before it."""


def blocks_of(path: str) -> Iterator[bytes]:
    """Yield blocks of messages, one message per line, without tombstones."""
    return object_blocks(path, ignored={_TOMBSTONE})


def parse_block(block: bytes, rows: pa.Schema | None = None) -> pa.Table:
    """Return the lines of a block as a table with the schema ``rows``; ``rows=None`` infers it.

    Raise ``pyarrow.ArrowInvalid`` for invalid JSON, and if a column has two types in the block.
    """
    if rows is not None:
        return _parse(block, rows)
    table = _parse(block)
    try:
        table.validate()
    except pa.ArrowInvalid:
        # Arrow finds the type of a list that begins with null, but loses the null.
        again = _parse(block, table.schema)
        columns = [pa.chunked_array(map(_with_nulls, each.chunks), each.type) for each in again]
        return pa.table(columns, table.schema)
    return table


def _parse(block: bytes, rows: pa.Schema | None = None) -> pa.Table:
    options = pyarrow.json.ParseOptions(
        explicit_schema=rows,
        unexpected_field_behavior="infer" if rows is None else "ignore",
    )
    read = pyarrow.json.ReadOptions(block_size=len(block) + 1)
    return pyarrow.json.read_json(io.BytesIO(block), read_options=read, parse_options=options)


def _with_nulls(array: pa.Array) -> pa.Array:
    """Return ``array`` with the null elements that Arrow has lost. Arrow loses elements of lists if
    the elements of all lists are null.
    """
    if pa.types.is_list(array.type):
        has_type = not pa.types.is_null(array.type.value_type)
        elements = _with_nulls(array.values) if has_type else pa.nulls(array.offsets[-1].as_py())
        return pa.ListArray.from_arrays(array.offsets, elements, mask=array.is_null())
    if pa.types.is_struct(array.type) and array.type.num_fields:
        members = [_with_nulls(array.field(place)) for place in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(array.type), mask=array.is_null())
    return array


def lines_where(block: bytes, mask: pa.Array, path: str) -> bytes:
    """Return the lines whose boolean in ``mask`` is true. Raise ``InvalidRequestError``, which
    names ``path``, if lines and messages differ in number.
    """
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == ord("\n")) + 1
    if not len(ends) or ends[-1] < len(data):
        ends = np.append(ends, len(data))
    if len(ends) != len(mask):
        raise lake.InvalidRequestError(
            f"cannot read {path}: a block of {counted(len(ends), 'line')} has "
            f"{counted(len(mask), 'message')}. Write each message to a line of its own"
        )
    lengths = np.diff(ends, prepend=0)
    kept: bytes = data[np.repeat(mask.to_numpy(zero_copy_only=False), lengths)].tobytes()
    return kept
