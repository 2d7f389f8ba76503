# SPDX-License-Identifier: Apache-2.0
"""Converts fields of many Avro records to Arrow arrays.

``NotPlainError`` is raised if a value does not fit the Arrow type.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakeformat.files.avro.avro_container import NotPlainError
from lakeformat.files.avro.record_reader import FieldValues, Lists, Mask, Numbers, Spans
from lakeformat.files.avro.record_shape import Atom, ListShape, Shape
from lakeformat.types.arrow_memory import array_of, as_bits
from lakeformat.types.unaligned import move_bytes

__all__ = ["to_arrow"]

_LARGEST = np.iinfo(np.int32).max
_BYTES = (Atom.BYTES, Atom.FIXED)
_FLOATS = {Atom.FLOAT: "<f4", Atom.DOUBLE: "<f8"}


def to_arrow(values: FieldValues, shape: Shape, wanted: pa.DataType) -> pa.Array:
    """Return a field of all records as an array of the type ``wanted``.

    ``shape`` is the form of the field in Avro.
    """
    content, present = values.content, values.present
    if isinstance(shape, ListShape):
        assert isinstance(content, Lists)
        return _lists(content, present, shape, wanted)
    assert not isinstance(content, Lists)
    return _atoms(content, present, shape.atom, wanted)


def _atoms(
    content: Numbers | Spans, present: Mask | None, atom: Atom, wanted: pa.DataType
) -> pa.Array:
    validity = None if present is None else as_bits(present)
    if isinstance(content, Spans):
        if atom in _FLOATS and pa.types.is_floating(wanted):
            return _floats(content, atom, validity, wanted)
        if pa.types.is_fixed_size_binary(wanted) and atom in _BYTES:
            return _fixed(content, present, wanted)
        if (pa.types.is_string(wanted) and atom is Atom.TEXT) or (
            pa.types.is_binary(wanted) and atom in _BYTES
        ):
            return _texts(content, validity, wanted)
    elif atom is Atom.BOOLEAN and pa.types.is_boolean(wanted):
        data = as_bits(content != 0)
        return pa.Array.from_buffers(wanted, len(content), [validity, data])
    elif atom is Atom.NUMBER and wanted in (pa.int32(), pa.int64()):
        return _numbers(content, validity, wanted)
    raise NotPlainError(f"a field of type {atom.value} stands where {wanted} is expected")


def _numbers(numbers: Numbers, validity: pa.Buffer | None, wanted: pa.DataType) -> pa.Array:
    stored = numbers.astype(wanted.to_pandas_dtype())
    if (stored != numbers).any():
        raise NotPlainError("a number is larger than its type")
    return pa.Array.from_buffers(wanted, len(numbers), [validity, pa.py_buffer(stored)])


def _floats(spans: Spans, atom: Atom, validity: pa.Buffer | None, wanted: pa.DataType) -> pa.Array:
    stored = np.dtype(_FLOATS[atom])
    if stored.itemsize > wanted.bit_width // 8:
        raise NotPlainError("a double stands where a float is expected")
    places = spans.starts[:, None] + np.arange(stored.itemsize)
    numbers = spans.data.take(places, mode="clip").reshape(-1).view(stored)
    data = pa.py_buffer(numbers.astype(wanted.to_pandas_dtype()))
    return pa.Array.from_buffers(wanted, len(numbers), [validity, data])


def _fixed(spans: Spans, present: Mask | None, wanted: pa.DataType) -> pa.Array:
    width = wanted.byte_width
    if (spans.sizes != width)[slice(None) if present is None else present].any():
        raise NotPlainError("a value has another size than its type")
    places = spans.starts[:, None] + np.arange(width)
    data = pa.py_buffer(spans.data.take(places, mode="clip"))
    validity = None if present is None else as_bits(present)
    return pa.Array.from_buffers(wanted, len(spans.starts), [validity, data])


def _texts(spans: Spans, validity: pa.Buffer | None, wanted: pa.DataType) -> pa.Array:
    """Return byte strings as an array of texts or bytes, without the bytes between them."""
    ends = np.cumsum(spans.sizes)
    total = int(ends[-1]) if len(ends) else 0
    if total > _LARGEST:
        raise NotPlainError("the values of a field have more bytes than an array can hold")
    content = np.empty(total, np.uint8)
    move_bytes(content, ends - spans.sizes, spans.data, spans.starts, spans.sizes)
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(content)]
    found = pa.Array.from_buffers(wanted, len(ends), buffers)
    if pa.types.is_string(wanted):
        _check_text(found)
    return found


def _check_text(texts: pa.Array) -> None:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as reason:
        raise NotPlainError(f"a text is not UTF-8: {reason}") from None


def _lists(lists: Lists, present: Mask | None, shape: ListShape, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_map(wanted) and len(shape.item) == 2:
        types = [wanted.key_type, wanted.item_type]
    elif pa.types.is_list(wanted) and len(shape.item) == 1:
        types = [wanted.value_type]
    else:
        raise NotPlainError(f"a list stands where {wanted} is expected")
    offsets = np.zeros(len(lists.counts) + 1, np.int64)
    np.cumsum(lists.counts, out=offsets[1:])
    # The offset of a null list is null.
    absent = None if present is None else np.append(~present, False)
    items = [
        _atoms(each, None, atom, kind)
        for each, atom, kind in zip(lists.items, shape.item, types, strict=True)
    ]
    made = pa.MapArray if pa.types.is_map(wanted) else pa.ListArray
    return made.from_arrays(_offsets(offsets, absent), *items, type=wanted)


def _offsets(offsets: Numbers, absent: Mask | None) -> pa.Array:
    if absent is None or not absent.any():
        return array_of(offsets.astype(np.int32))
    data = pa.py_buffer(offsets.astype(np.int32))
    return pa.Array.from_buffers(pa.int32(), len(offsets), [as_bits(~absent), data])
