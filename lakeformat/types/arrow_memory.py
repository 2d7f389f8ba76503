# SPDX-License-Identifier: Apache-2.0
"""Returns the buffers of Arrow arrays as numpy arrays, also of slices and of arrays without a
validity buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakeformat.types.unaligned import Bytes, Positions, Words

__all__ = [
    "array_of",
    "as_bits",
    "byte_spans",
    "decimal_array",
    "null_mask",
    "numbers",
    "spans",
]

# The last word of a value may span two aligned words: the second one must be whole.
_READABLE_AFTER = 16
_DECIMAL_SIZE = 16


def null_mask(array: pa.Array) -> NDArray[np.bool_] | None:
    """Return a mask that is True for nulls; None if the array has no nulls."""
    if array.null_count == 0:
        return None
    return ~_bits(array.buffers()[0], array.offset, len(array))


def numbers(array: pa.Array) -> NDArray[Any]:
    """Return the values of a fixed-width array as a numpy array; the values of nulls are arbitrary.

    A 128-bit decimal becomes a row of two numbers: its low and its high half.
    """
    buffer = array.buffers()[1]
    rows = len(array)
    if pa.types.is_boolean(array.type):
        return _bits(buffer, array.offset, rows)
    if pa.types.is_decimal128(array.type):
        return _read(buffer, "u8", 2 * array.offset, 2 * rows).reshape(rows, 2)
    width = array.type.bit_width // 8
    kind = "f" if pa.types.is_floating(array.type) else "i"
    return _read(buffer, f"{kind}{width}", array.offset, rows)


def array_of(values: NDArray[Any]) -> pa.Array:
    """Return numbers or booleans as an Arrow array; contiguous numbers are not copied.

    ``pa.array`` would load pandas, only to check whether it got a pandas Series.
    """
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, as_bits(values)])
    content = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, content])


def byte_spans(array: pa.Array) -> tuple[Bytes, Positions, Positions]:
    """Return the data buffer of a string or binary array, and the offsets of the start and the end
    of each value.
    """
    _, offsets_buffer, data_buffer = array.buffers()
    is_long = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    code = "i8" if is_long else "i4"
    if len(array) == 0:
        nothing = np.zeros(0, np.int64)
        return np.zeros(0, np.uint8), nothing, nothing
    offsets = _read(offsets_buffer, code, array.offset, len(array) + 1).astype(np.int64)
    size = 0 if data_buffer is None else data_buffer.size
    return _read(data_buffer, "u1", 0, size), offsets[:-1], offsets[1:]


def spans(array: pa.Array, nulls: NDArray[np.bool_] | None) -> tuple[Words, Positions, Positions]:
    """Return 8-byte words that contain all values of a string or binary array, and the start and
    the size of each value in bytes.

    At least 16 bytes can be read after the end of the last value. Nulls have size 0, even if Arrow
    keeps bytes for them.
    """
    data, starts, ends = byte_spans(array)
    sizes = ends - starts
    if nulls is not None:
        sizes[nulls] = 0
    first, last = (int(starts[0]), int(ends[-1])) if len(starts) else (0, 0)
    readable = len(data) // 8 * 8
    if last + _READABLE_AFTER <= readable and data.ctypes.data % 8 == 0:
        return data[:readable].view(np.uint64), starts, sizes
    words = np.zeros((last - first + _READABLE_AFTER + 7) // 8, np.uint64)
    words.view(np.uint8)[: last - first] = data[first:last]
    return words, starts - first, sizes


def decimal_array(unscaled: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Build decimals from unscaled integers; None becomes null.

    A number may exceed the precision of ``kind``. Raise ``ValueError`` for a number beyond 128
    bits.
    """
    content = bytearray()
    for number in unscaled:
        try:
            content += (number or 0).to_bytes(_DECIMAL_SIZE, "little", signed=True)
        except OverflowError:
            raise ValueError(f"{number} has more digits than any decimal") from None
    validity = as_bits(np.array([number is not None for number in unscaled], np.bool_))
    return pa.Array.from_buffers(kind, len(unscaled), [validity, pa.py_buffer(content)])


def as_bits(mask: NDArray[np.bool_]) -> pa.Buffer:
    """Pack a mask the way Arrow stores validity and booleans: one bit each."""
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def _bits(buffer: pa.Buffer | None, offset: int, rows: int) -> NDArray[np.bool_]:
    first = offset // 8
    packed = _read(buffer, "u1", first, (offset + rows + 7) // 8 - first if rows else 0)
    bits = np.unpackbits(packed, bitorder="little")
    return bits[offset % 8 : offset % 8 + rows].view(np.bool_)


def _read(buffer: pa.Buffer | None, code: str, offset: int, count: int) -> NDArray[Any]:
    dtype = np.dtype(f"<{code}")
    if buffer is None or count == 0:
        return np.zeros(0, dtype)
    return np.frombuffer(buffer, dtype, count, offset * dtype.itemsize)
