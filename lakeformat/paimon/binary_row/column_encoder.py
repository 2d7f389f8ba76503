# SPDX-License-Identifier: Apache-2.0
"""Encodes whole columns to binary rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.binary_row.column_parts import (
    Offset,
    RowParts,
    Slot,
    WideTail,
    as_row_columns,
    row_parts,
)
from lakeformat.paimon.binary_row.layout import FRAME_SIZE, fixed_size, header_size
from lakeformat.types.types import DataType
from lakeformat.types.unaligned import Bytes, Positions, at_every_byte, move_bytes

__all__ = ["encode_columns"]

_MAX_BYTES = (1 << 31) - 1


def encode_columns(
    arrays: Sequence[pa.Array], types: Sequence[DataType], *, framed: bool = True
) -> pa.Array:
    """Return one binary row for each row of the columns ``arrays``.

    Without columns the result is empty. With ``framed``, each row begins with its arity, as in
    manifests. Raise InvalidRequestError if all rows together exceed 2 GiB, and in the cases of
    ``as_row_columns``.
    """
    columns = as_row_columns(arrays, types)
    rows = len(columns[0]) if columns else 0
    parts = row_parts(columns, types, rows)
    frame = FRAME_SIZE if framed else 0
    offsets = np.zeros(rows + 1, np.int64)
    offsets[1:] = frame + parts.end
    np.cumsum(offsets, out=offsets)
    if offsets[-1] > _MAX_BYTES:
        raise InvalidRequestError(
            f"{rows} rows take {offsets[-1]} bytes, more than the 2 GiB that one array holds: "
            "write fewer rows at once"
        )
    data = np.zeros(offsets[-1], np.uint8)
    target = _Target(data, offsets[:-1], rows > 0 and isinstance(parts.end, int))
    if framed:
        target.put(0, np.full(rows, len(types), np.uint32).byteswap())
    _write_rows(target, frame, parts)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


@dataclass(frozen=True, slots=True)
class _Target:
    """The bytes of all rows, and the byte offset at which each row starts.

    ``is_regular`` is True if all rows have the same size.
    """

    data: Bytes
    starts: Positions
    is_regular: bool

    def put(self, offset: Offset, words: Slot) -> None:
        """Write one number into each row, ``offset`` bytes after its start."""
        code = words.dtype.str
        if self.is_regular and isinstance(offset, int):
            # Rows of equal size form a table, whose columns numpy writes much faster.
            rows = len(self.starts)
            np.ndarray((rows,), code, self.data, offset, (len(self.data) // rows,))[:] = words
        else:
            at_every_byte(self.data, code)[self.starts + offset] = words


def _write_rows(target: _Target, first: int, parts: RowParts) -> None:
    for number, word in enumerate(parts.header):
        if not isinstance(word, int):
            target.put(first + 8 * number, word)
    arity = len(parts.slots)
    for position, slot in enumerate(parts.slots):
        # The buffer is zeroed, so the upper half of a slot of 32 bits is zero.
        target.put(first + header_size(arity) + 8 * position, slot)
    offset: Offset = first + fixed_size(arity)
    for tail in parts.tails:
        if isinstance(tail, WideTail):
            for word in tail.words:
                target.put(offset, word)
                offset = offset + 8
        else:
            to = target.starts + offset
            move_bytes(target.data, to, tail.source.view(np.uint8), tail.starts, tail.sizes)
            offset = offset + ((tail.sizes + 7) & -8)
