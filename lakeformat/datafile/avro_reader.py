"""Reads Avro files in batches.

fastavro makes Python objects of the values, row by row; Arrow takes them a batch at a time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, cast

import fastavro
import pyarrow as pa

from lakeformat.datafile.avro_schema import avro_columns, plain_record

__all__ = ["read_avro"]

MAX_BATCH_ROWS = 8 * 1024
"""A batch is a list of dictionaries before it is Arrow: ten times the memory."""
SYNC_SIZE = 16


def read_avro(
    stream: IO[bytes], columns: list[str], batch_rows: int, rows: range
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches with the position of their first row, until ``rows`` ends."""
    try:
        for position, values, kind in _batches(stream, columns, batch_rows):
            if position >= rows.stop:
                return
            yield position, pa.RecordBatch.from_struct_array(pa.array(values, kind))
    except GeneratorExit:
        raise
    except Exception as reason:  # fastavro and its codecs raise whatever a broken byte leads to
        raise ValueError(f"{type(reason).__name__}: {reason}") from reason


def _batches(
    stream: IO[bytes], wanted: list[str], batch_rows: int
) -> Iterator[tuple[int, list[Any], pa.DataType]]:
    source = _Counted(stream)
    header = fastavro.reader(cast(IO[bytes], source))
    written = avro_columns(header.writer_schema)
    named = {column.name: column for column in written}
    chosen = [named[name] for name in wanted]
    plain = plain_record(written)
    kind = pa.struct([(column.name, column.arrow) for column in chosen])
    blocks = _Spliced(_header(plain, header.codec, source.last(SYNC_SIZE)), source)
    records = fastavro.reader(
        cast(IO[bytes], blocks),
        # Resolving costs time, skipping columns saves it.
        plain_record(chosen) if len(chosen) < len(written) else None,
    )
    position, size = 0, min(batch_rows, MAX_BATCH_ROWS)
    while values := list(islice(records, size)):
        yield position, values, kind
        position += len(values)


def _header(schema: dict[str, Any], codec: str, sync: bytes) -> bytes:
    """The header of a file whose blocks are read by another schema than the one they came with."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, [], codec=codec, sync_marker=sync)
    return buffer.getvalue()


class _Counted:
    """A stream that is never asked for more than there is, whatever a broken length says."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._size = stream.seek(0, io.SEEK_END)
        stream.seek(0)

    def read(self, size: int) -> bytes:
        return self._stream.read(min(size, self._size - self._stream.tell()))

    def tell(self) -> int:
        return self._stream.tell()

    def last(self, size: int) -> bytes:
        """The bytes just read, again."""
        self._stream.seek(-size, io.SEEK_CUR)
        return self._stream.read(size)


class _Spliced:
    """A head, and what is left of a stream."""

    def __init__(self, head: bytes, rest: _Counted) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest

    def read(self, size: int) -> bytes:
        return self._head.read(size) or self._rest.read(size)

    def tell(self) -> int:
        return self._head.tell() + self._rest.tell()
