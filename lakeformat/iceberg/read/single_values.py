# SPDX-License-Identifier: Apache-2.0
"""Decodes bounds of columns and partitions from Iceberg's binary single-value form.

A bound that was written before a promotion of the column's type has the size of the earlier type. A
value whose size fits neither type becomes null, which means an unknown bound. So does a value that
is beyond the range of the promoted type, such as a date of the year 9999 in nanoseconds.
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
_MOST_LONG = 2**63 - 1
_NEGATIVE = b"\x80"
"""The bit that is set in the first byte of a negative number."""
# For each type: the numpy types of its stored form, and the factor to the current unit.
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
    """Return an array of the type ``kind`` from binary values.

    A value that cannot be decoded becomes null.
    """
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
    """Return lower and upper bounds of the type ``kind`` from binary values.

    Bounds of UUIDs are widened, because Iceberg's Java library before 1.11 compared UUIDs as two
    signed numbers of 64 bits. Only the first number of each bound is used. If the first numbers of
    the two bounds have different signs, both bounds are null.
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
    """Decode all values at once; if that fails, decode halves, so that only damaged values become
    null.
    """
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
        values = content[places].reshape(-1).view(dtype).astype(found.dtype)
        found[rows] = values * unit
        known[rows] = unit == 1 or np.abs(values) <= _MOST_LONG // unit
    return _array(found, known, wanted)


def _array(
    values: npt.NDArray[np.generic], known: npt.NDArray[np.bool_], wanted: pa.DataType
) -> pa.Array:
    data = as_bits(values != 0) if pa.types.is_boolean(wanted) else pa.py_buffer(values)
    return pa.Array.from_buffers(wanted, len(values), [as_bits(known), data])
