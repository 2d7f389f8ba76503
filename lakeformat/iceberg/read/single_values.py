# SPDX-License-Identifier: Apache-2.0
"""Bounds of columns and partitions, decoded from the binary form of single values.

A bound written before its column was promoted has the bytes of the earlier type. A value of any
other size is null: an unknown bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.decimal_bytes import WIDTH, decimals_from_bytes
from lakeformat.iceberg.arrow_types import to_arrow_type
from lakeformat.iceberg.types import PrimitiveType
from lakeformat.types.arrow_memory import as_bits, byte_spans, null_mask

__all__ = ["bounds_of", "single_values"]

_MICROS_PER_DAY = 86_400_000_000
_NEGATIVE = b"\x80"
"""The first of the bytes with the sign of a negative number."""
# The forms of each type: numpy's type of the bytes, and how many units of today one unit is.
_NUMBERS: dict[str, tuple[tuple[str, int], ...]] = {
    "boolean": (("<u1", 1),),
    "int": (("<i4", 1),),
    "long": (("<i8", 1), ("<i4", 1)),
    "float": (("<f4", 1),),
    "double": (("<f8", 1), ("<f4", 1)),
    "date": (("<i4", 1),),
    "time": (("<i8", 1),),
    "timestamp": (("<i8", 1), ("<i4", _MICROS_PER_DAY)),
    "timestamptz": (("<i8", 1),),
    "timestamp_ns": (("<i8", 1), ("<i4", 1_000 * _MICROS_PER_DAY)),
    "timestamptz_ns": (("<i8", 1),),
}


def single_values(encoded: pa.Array, kind: PrimitiveType) -> pa.Array:
    """Return a binary array of single values as an array of the type; null if it cannot be read."""
    wanted = to_arrow_type(kind)
    if kind.name in _NUMBERS:
        return _numbers(encoded, _NUMBERS[kind.name], wanted)
    if kind.name == "decimal":
        sizes = pc.binary_length(encoded)
        fits = pc.and_(pc.greater(sizes, 0), pc.less_equal(sizes, WIDTH))
        return _checked(lambda known: decimals_from_bytes(known, wanted), _where(fits, encoded))
    if pa.types.is_fixed_size_binary(wanted):
        fits = pc.equal(pc.binary_length(encoded), wanted.byte_width)
        return _where(fits, encoded).cast(wanted)
    if pa.types.is_null(wanted):
        return pa.nulls(len(encoded))
    return _checked(lambda known: known.cast(wanted), encoded)


def bounds_of(lower: pa.Array, upper: pa.Array, kind: PrimitiveType) -> tuple[pa.Array, pa.Array]:
    """Return bounds that hold in the order in which values are compared.

    Java before 1.11 ordered UUIDs as two signed numbers. So their bounds are known only if both
    have the same sign, and by their first half.
    """
    least, most = single_values(lower, kind), single_values(upper, kind)
    if kind.name != "uuid":
        return least, most
    first, last = (pc.binary_slice(each.cast(pa.binary()), 0, 8) for each in (least, most))
    known = pc.equal(pc.less(first, _NEGATIVE), pc.less(last, _NEGATIVE))
    widened = (
        pc.binary_join_element_wise(half, rest, b"")
        for half, rest in ((first, bytes(8)), (last, b"\xff" * 8))
    )
    least, most = (_where(known, each).cast(least.type) for each in widened)
    return least, most


def _where(fits: pa.Array, encoded: pa.Array) -> pa.Array:
    return pc.if_else(fits, encoded, pa.scalar(None, encoded.type))


def _checked(decode: Callable[[pa.Array], pa.Array], encoded: pa.Array) -> pa.Array:
    """Decode all values at once; if one of them is damaged, each on its own."""
    try:
        return decode(encoded)
    except (pa.ArrowInvalid, ValueError):
        if len(encoded) == 1:
            return pa.nulls(1, decode(encoded.slice(0, 0)).type)
    half = len(encoded) // 2
    parts = (encoded.slice(0, half), encoded.slice(half))
    return pa.concat_arrays([_checked(decode, part) for part in parts])


def _numbers(
    encoded: pa.Array, forms: tuple[tuple[str, int], ...], wanted: pa.DataType
) -> pa.Array:
    content, starts, ends = byte_spans(encoded)
    sizes = ends - starts
    if (nulls := null_mask(encoded)) is not None:
        sizes[nulls] = 0
    found = np.zeros(len(encoded), np.dtype(forms[0][0]))
    known = np.zeros(len(encoded), np.bool_)
    for code, unit in forms:
        dtype = np.dtype(code)
        rows = np.flatnonzero(sizes == dtype.itemsize)
        places = starts[rows, None] + np.arange(dtype.itemsize)
        found[rows] = content[places].reshape(-1).view(dtype).astype(found.dtype) * unit
        known[rows] = True
    return _array(found, known, wanted)


def _array(
    values: npt.NDArray[np.generic], known: npt.NDArray[np.bool_], wanted: pa.DataType
) -> pa.Array:
    data = as_bits(values != 0) if pa.types.is_boolean(wanted) else pa.py_buffer(values)
    return pa.Array.from_buffers(wanted, len(values), [as_bits(known), data])
