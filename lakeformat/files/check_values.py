# SPDX-License-Identifier: Apache-2.0
"""Checks that decoded values are valid for their types.

Arrow checks texts one by one. Most texts are ASCII, and one check of all their bytes is several
times faster. So columns of ASCII texts are checked here, and other texts by Arrow.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakeformat.files.decimal_range import check_decimals

__all__ = ["check_values", "is_ascii"]

_ALL_VALUES = frozenset(
    [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.date32(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns"))),
    ]
)
"""Types whose values need no check: every bit pattern is a valid value."""
_NOT_ASCII = np.uint64(0x8080808080808080)


def check_values(batch: pa.RecordBatch) -> None:
    """Raise ``ArrowInvalid`` for a text that is not UTF-8, or a value that its type does not allow.

    ``check_decimals`` defines which decimals a type allows.
    """
    batch.validate()
    for column in batch.columns:
        if column.type in _ALL_VALUES:
            continue
        if pa.types.is_decimal128(column.type):
            check_decimals(column)
        elif not (pa.types.is_string(column.type) and is_ascii(column)):
            column.validate(full=True)


def is_ascii(texts: pa.Array) -> bool:
    """Return True only if all texts are ASCII.

    Return False, even for ASCII texts, if there is no data buffer or if the offsets descend. Call
    Arrow's ``validate`` first: it refuses offsets beyond the data buffer.
    """
    rows = len(texts)
    if rows == 0:
        return True
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, rows + 1, 4 * texts.offset)
    if data_buffer is None or (offsets[1:] < offsets[:-1]).any():
        return False
    data = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    words = len(data) // 8 * 8
    bits = np.bitwise_or.reduce(data[:words].view(np.uint64), initial=np.uint64(0))
    return not bits & _NOT_ASCII and data[words:].tobytes().isascii()
