# SPDX-License-Identifier: Apache-2.0
"""Writes ORC files."""

from __future__ import annotations

from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from lakeformat.errors import InvalidRequestError
from lakeformat.files.batch_statistics import BatchStatistics
from lakeformat.files.codecs import CODECS
from lakeformat.files.column_statistics import ColumnStatistics, Detail, has_order
from lakeformat.files.field_ids import orc_schema
from lakeformat.files.file_format import FileFormat
from lakeformat.files.file_writer import FileContent
from lakeformat.files.nested_arrays import map_entries
from lakeformat.files.orc.patient_stream import PatientStream
from lakeformat.types.types import AtomicType, DataType, TypeName

__all__ = ["OrcFileWriter"]

MAX_STRIPE_BYTES = 64 << 20
MIN_STRIPE_BYTES = 64 << 10
STRIPES_PER_FILE = 4
"""The number of stripes in a file of the target size, as far as the limits of a stripe's size
allow. The size of a file is known only between stripes, so several are needed to meet the target
size.
"""

NANOS_PER_MILLI = 1_000_000

_BINARY = (TypeName.BINARY, TypeName.VARBINARY)


class OrcFileWriter:
    """Writes an ORC file; Arrow's library writes a stripe as soon as it has enough rows."""

    def __init__(self, stream: IO[bytes], content: FileContent) -> None:
        self._stream = PatientStream(stream)
        self._schema = orc_schema(content.fields)
        bounded = [
            mode.detail is Detail.BOUNDS and _has_bounds(field.type)
            for field, mode in zip(content.fields, content.modes, strict=True)
        ]
        self._statistics = BatchStatistics(content.fields, bounded)
        settings = content.settings
        stripe = settings.target_bytes // STRIPES_PER_FILE
        self._writer = orc.ORCWriter(
            self._stream,
            compression=CODECS[FileFormat.ORC][settings.compression],
            stripe_size=min(max(stripe, MIN_STRIPE_BYTES), MAX_STRIPE_BYTES),
        )

    @property
    def size(self) -> int:
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        self._statistics.add(rows)
        stored = pa.Table.from_arrays(
            [_cast(rows[field.name], field) for field in self._schema], schema=self._schema
        )
        _refuse_fractions_before_1970(stored)
        self._writer.write(_as_arrow_writes_them(stored))
        self._stream.raise_error()

    def close(self) -> list[ColumnStatistics]:
        self._writer.close()
        self._stream.raise_error()
        return self._statistics.result()

    def discard(self) -> None:
        self._writer.is_open = False


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as reason:
        raise InvalidRequestError(
            f"column {field.name!r} has a timestamp before 1677 or after 2262, which Arrow cannot "
            f"write to ORC: {reason}; set 'file.format' to parquet"
        ) from None


def _refuse_fractions_before_1970(rows: pa.Table) -> None:
    """Raise ``InvalidRequestError`` for a timestamp before 1970 with a fraction of a millisecond.

    Arrow's writer stores such a timestamp with the next second, and Java cannot read the file.
    """
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if any(_has_fraction_before_1970(chunk) for chunk in column.chunks):
            raise InvalidRequestError(
                f"column {name!r} has a timestamp before 1970 with a fraction of a millisecond, "
                "and Java cannot read an ORC file with such values; set 'file.format' to parquet, "
                "or cut such values to milliseconds"
            )


def _has_fraction_before_1970(array: pa.Array) -> bool:
    if pa.types.is_timestamp(array.type):
        counts = array.view(pa.int64())
        before = counts.filter(pc.less(counts, 0))
        whole = pc.multiply(pc.divide(before, NANOS_PER_MILLI), NANOS_PER_MILLI)
        return not whole.equals(before)
    if pa.types.is_struct(array.type):
        return any(map(_has_fraction_before_1970, array.flatten()))
    if pa.types.is_map(array.type):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        entries = map_entries(array)
        return any(_has_fraction_before_1970(part.slice(start, end - start)) for part in entries)
    return pa.types.is_list(array.type) and _has_fraction_before_1970(array.flatten())


def _as_arrow_writes_them(rows: pa.Table) -> pa.Table:
    """Return the rows in a form that Arrow's ORC writer stores correctly.

    Arrow's writer takes the nulls of a sliced struct from the wrong rows, so structs are copied. If
    a null struct has a value inside, the writer stores wrong values after it. So all values inside
    of null structs become null.
    """
    for number, column in enumerate(rows.columns):
        if _has_struct(column.type):
            copies = [chunk.take(pa.array(np.arange(len(chunk)))) for chunk in column.chunks]
            plain = pa.chunked_array(map(_without_hidden_values, copies), column.type)
            rows = rows.set_column(number, rows.schema.field(number), plain)
    return rows


def _without_hidden_values(array: pa.Array) -> pa.Array:
    """Return an array with null for each value inside of a null struct; ``array`` must not be a
    slice.
    """
    if not _has_struct(array.type):
        return array
    nulls = array.is_null()
    if pa.types.is_struct(array.type):
        members = [_without_hidden_values(member) for member in array.flatten()]
        return pa.StructArray.from_arrays(members, fields=list(array.type), mask=nulls)
    if pa.types.is_map(array.type):
        keys, items = (_without_hidden_values(part) for part in (array.keys, array.items))
        return pa.MapArray.from_arrays(array.offsets, keys, items, array.type, mask=nulls)
    values = _without_hidden_values(array.values)
    return pa.ListArray.from_arrays(array.offsets, values, type=array.type, mask=nulls)


def _has_struct(arrow_type: pa.DataType) -> bool:
    if pa.types.is_map(arrow_type):
        return _has_struct(arrow_type.key_type) or _has_struct(arrow_type.item_type)
    if pa.types.is_list(arrow_type):
        return _has_struct(arrow_type.value_type)
    return bool(pa.types.is_struct(arrow_type))


def _has_bounds(data_type: DataType) -> bool:
    """Return True if Java reads bounds of this type from ORC files. It reads no bounds of bytes."""
    is_binary = isinstance(data_type, AtomicType) and data_type.name in _BINARY
    return has_order(data_type) and not is_binary
