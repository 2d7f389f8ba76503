"""Writes ORC files."""

from __future__ import annotations

from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc

from lakeformat.datafile.batch_statistics import BatchStatistics, has_order
from lakeformat.datafile.column_statistics import ColumnStatistics
from lakeformat.datafile.field_ids import orc_schema
from lakeformat.datafile.file_writer import FileContent
from lakeformat.datafile.patient_stream import PatientStream
from lakeformat.datafile.statistics_modes import Detail
from lakeformat.errors import InvalidRequestError
from lakeformat.types import AtomicType, DataType, TypeName

__all__ = ["OrcFileWriter"]

MAX_STRIPE_BYTES = 64 << 20
MIN_STRIPE_BYTES = 64 << 10
STRIPES_PER_FILE = 4
"""The size of a file is known stripe by stripe: so many bring it near its target."""

_BINARY = (TypeName.BINARY, TypeName.VARBINARY)


class OrcFileWriter:
    """Stripes are the library's own affair; it writes one when it holds enough rows."""

    def __init__(self, stream: IO[bytes], content: FileContent) -> None:
        self._stream = PatientStream(stream)
        self._schema = orc_schema(content.fields)
        bounded = [
            mode.detail is Detail.BOUNDS and _has_bounds(field.type)
            for field, mode in zip(content.fields, content.modes, strict=True)
        ]
        self._statistics = BatchStatistics(content.fields, bounded)
        options = content.options
        stripe = options.target_file_size_bytes // STRIPES_PER_FILE
        none = options.file_compression == "none"
        self._writer = orc.ORCWriter(
            self._stream,
            compression="uncompressed" if none else options.file_compression,
            stripe_size=min(max(stripe, MIN_STRIPE_BYTES), MAX_STRIPE_BYTES),
        )

    @property
    def size(self) -> int:
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        self._statistics.add(rows)
        try:
            stored = rows.cast(self._schema)
        except pa.ArrowInvalid as reason:
            raise InvalidRequestError(
                f"a timestamp is out of the range ORC files are read in, 1677 to 2262: {reason}; "
                "set 'file.format' to parquet"
            ) from None
        self._writer.write(_without_slices(stored))
        self._stream.raise_error()

    def close(self) -> list[ColumnStatistics]:
        self._writer.close()
        self._stream.raise_error()
        return self._statistics.result()

    def discard(self) -> None:
        self._writer.is_open = False


def _without_slices(rows: pa.Table) -> pa.Table:
    """Copy structs: Arrow's writer takes the nulls of a sliced one from the wrong rows."""
    for number, column in enumerate(rows.columns):
        if _has_struct(column.type):
            copies = [chunk.take(pa.array(np.arange(len(chunk)))) for chunk in column.chunks]
            copied = pa.chunked_array(copies, column.type)
            rows = rows.set_column(number, rows.schema.field(number), copied)
    return rows


def _has_struct(arrow_type: pa.DataType) -> bool:
    if pa.types.is_map(arrow_type):
        return _has_struct(arrow_type.key_type) or _has_struct(arrow_type.item_type)
    if pa.types.is_list(arrow_type):
        return _has_struct(arrow_type.value_type)
    return bool(pa.types.is_struct(arrow_type))


def _has_bounds(data_type: DataType) -> bool:
    """Java finds no bounds of bytes in an ORC file."""
    is_binary = isinstance(data_type, AtomicType) and data_type.name in _BINARY
    return has_order(data_type) and not is_binary
