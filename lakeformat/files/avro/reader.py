# SPDX-License-Identifier: Apache-2.0
"""Reads Avro files as Arrow batches.

fastavro creates Python objects of the values, row by row; Arrow converts them a batch at a time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any, cast

import fastavro
import pyarrow as pa

from lakeformat.files.avro.avro_container import (
    MAGIC,
    SYNC_SIZE,
    BlockLimitError,
    NotPlainError,
    short_reason,
    unpack_block,
)
from lakeformat.files.avro.avro_packing import avro_number
from lakeformat.files.avro.avro_records import record_schema
from lakeformat.files.avro.schema import avro_columns, plain_record
from lakeformat.files.column_choice import ColumnChoice, chosen_columns
from lakeformat.files.missing_columns import MissingColumnError
from lakeformat.types.count_text import counted

__all__ = ["read_avro"]

MAX_BATCH_ROWS = 8 * 1024
"""The largest number of rows in a batch. fastavro decodes a row to a dict, which takes ten times
Arrow's memory.
"""
_LONGEST_NUMBER = 10


def read_avro(
    stream: IO[bytes], columns: ColumnChoice, batch_rows: int, rows: range
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches of ``columns``, each with the position of its first row in the file.

    ``rows`` is the range of rows that the caller needs. Earlier rows are yielded, too; batches that
    begin after this range are left out. Raise ``MissingColumnError`` if the file lacks a column,
    and ``ValueError`` for a damaged file.
    """
    source = _Counted(stream)
    start = source.read(len(MAGIC))
    if start != MAGIC:
        raise ValueError(f"it is not an Avro file: it starts with {start!r} instead of {MAGIC!r}")
    stream.seek(0)
    try:
        for position, values, kind in _batches(source, columns, batch_rows):
            if position >= rows.stop:
                return
            yield position, pa.RecordBatch.from_struct_array(pa.array(values, kind))
    except (GeneratorExit, MissingColumnError):
        raise
    except NotPlainError as reason:
        raise ValueError(f"{source.place}: {reason}") from reason
    except Exception as reason:  # fastavro raises errors of any class for damaged bytes
        raise ValueError(f"{source.place}: {short_reason(reason)}") from reason


def _batches(
    source: _Counted, choice: ColumnChoice, batch_rows: int
) -> Iterator[tuple[int, list[Any], pa.DataType]]:
    header = fastavro.reader(cast(IO[bytes], source))
    written = avro_columns(header.writer_schema)
    record_schema(header.metadata["avro.schema"].encode())  # refuses items without bytes
    named = {column.name: column for column in written}
    schema = pa.schema([column.field for column in written])
    chosen = [named[name] for name in chosen_columns(choice, schema)]
    plain = plain_record(written)
    kind = pa.struct([column.field for column in chosen])
    sync = source.last(SYNC_SIZE)
    blocks = _UnpackedStream(_header(plain, sync), source, header.codec, sync)
    records = fastavro.reader(
        cast(IO[bytes], blocks),
        # Pass a schema only to skip columns, because resolving it takes time.
        plain_record(chosen) if len(chosen) < len(written) else None,
    )
    position, size = 0, min(batch_rows, MAX_BATCH_ROWS)
    while values := list(islice(records, size)):
        yield position, values, kind
        position += len(values)


def _header(schema: dict[str, Any], sync: bytes) -> bytes:
    """Return a file header with this schema and without compression, for the unpacked blocks."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, [], codec="null", sync_marker=sync)
    return buffer.getvalue()


class _Counted:
    """A stream that returns no more bytes than the file has left: a damaged length may ask for
    more.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.size = stream.seek(0, io.SEEK_END)
        self.place = "its header"
        """The part of the file that is being read, for error messages."""
        stream.seek(0)

    def read(self, size: int) -> bytes:
        return self._stream.read(min(size, self.size - self._stream.tell()))

    def tell(self) -> int:
        return self._stream.tell()

    def last(self, size: int) -> bytes:
        self._stream.seek(-size, io.SEEK_CUR)
        return self._stream.read(size)

    def number(self) -> int:
        found = 0
        for byte in range(_LONGEST_NUMBER):
            read = self.read(1)
            if not read:
                raise NotPlainError("it ends early")
            found |= (read[0] & 0x7F) << 7 * byte
            if read[0] < 0x80:
                return found >> 1 ^ -(found & 1)
        raise NotPlainError("a number is too long")


class _UnpackedStream:
    """A stream of a header and of the unpacked blocks of a file; each block is unpacked when it is
    read.

    Raise ``NotPlainError`` for a damaged block. A block also counts as damaged if its unpacked size
    would be far more than its stored bytes can hold, or if it claims more records than it has
    unpacked bytes: such a block could exhaust the memory.
    """

    def __init__(self, head: bytes, source: _Counted, codec: str, sync: bytes) -> None:
        self._now = io.BytesIO(head)
        self._source = source
        self._codec = codec
        self._sync = sync
        self._blocks = 0

    def read(self, size: int) -> bytes:
        found = self._now.read(size)
        if found or not size or self._source.tell() >= self._source.size:
            return found
        self._now = io.BytesIO(self._next())
        return self._now.read(size)

    def tell(self) -> int:
        return self._source.tell()

    def _next(self) -> bytes:
        source = self._source
        source.place = f"block {self._blocks} at byte {source.tell()}"
        self._blocks += 1
        count, size = source.number(), source.number()
        if not 0 <= size <= (rest := source.size - source.tell()):
            raise NotPlainError(
                f"its stored size is {counted(size, 'byte')}, but the file has only {rest} more"
            )
        packed = source.read(size)
        if source.read(SYNC_SIZE) != self._sync:
            raise NotPlainError("the sync marker does not follow it")
        try:
            content = unpack_block(self._codec, packed)
        except BlockLimitError:
            raise NotPlainError(
                f"its decompressed size would be far more than {counted(size, 'byte')} can hold"
            ) from None
        if not 0 <= count <= len(content):
            raise NotPlainError(
                f"it claims {counted(count, 'record')} in {counted(len(content), 'byte')}"
            )
        return b"".join((avro_number(count), avro_number(len(content)), content, self._sync))
