# SPDX-License-Identifier: Apache-2.0
"""Writes Parquet files column by column, each encoded once by the fastest encoder.

This package encodes columns without nulls that have numbers or few distinct texts. Arrow encodes
all other columns. Files of a table with a primary key may have each key column twice: it is encoded
once and written twice. The bytes of the file are the same as from Arrow's writer.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.files.parquet.arrow_file import ParquetLayout, arrow_writer
from lakeformat.files.parquet.column_chunk import ColumnChunk, found_chunk
from lakeformat.files.parquet.end import MAGIC, footer_of, with_end
from lakeformat.files.parquet.int96_arrays import leaf_columns
from lakeformat.files.parquet.number_chunks import encode_constant, encode_plain, is_plain
from lakeformat.files.parquet.pages import PageCodec
from lakeformat.files.parquet.text_chunks import encode_texts
from lakeformat.files.parquet.thrift_compact import (
    StructWriter,
    ThriftKind,
    serialize_number,
    serialize_structs,
)
from lakeformat.files.parquet.thrift_walk import find_member, number_at, structs_at

__all__ = ["WORTH_ASSEMBLING", "AssembledFile", "is_worth_assembling"]

Encoder: TypeAlias = Callable[[pa.ChunkedArray, pa.Field], ColumnChunk | None]

WORTH_ASSEMBLING = 64 * 1024
"""The least number of rows in a row group for which an ``AssembledFile`` saves time."""

# Numbers of members: of the footer,
_ROWS, _ROW_GROUPS = 3, 4
# and of a row group.
_COLUMNS, _BYTES, _GROUP_ROWS, _GROUP_OFFSET, _STORED_BYTES = 1, 2, 3, 5, 6


def is_worth_assembling(rows: pa.Table, layout: ParquetLayout, repeated: Collection[str]) -> bool:
    """Return True if Arrow would encode at most half of the bytes of a row group.

    The columns that Arrow encodes are kept in memory until they are written, so a larger part would
    cost memory and save no time. ``repeated`` are the columns that repeat an earlier one. Return
    False for a compression that this package does not write.
    """
    if PageCodec.of(layout.settings) is None:
        return False
    left = rows.select(
        [
            field.name
            for field, column in zip(rows.schema, rows.columns, strict=True)
            if field.name not in repeated and (column.null_count or not _is_encoded(field, layout))
        ]
    )
    return bool(2 * left.nbytes <= rows.nbytes)


def _is_encoded(field: pa.Field, layout: ParquetLayout) -> bool:
    is_text = pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)
    return field.name in layout.dictionary_columns if is_text else is_plain(field.type)


class AssembledFile:
    """A Parquet file whose columns are written one after the other, each as finished pages."""

    def __init__(
        self, stream: IO[bytes], layout: ParquetLayout, repeated: Mapping[str, str]
    ) -> None:
        """Begin a file; ``repeated`` maps a column to the earlier column with the same values."""
        self._stream, self._layout, self._repeated = stream, layout, repeated
        codec = PageCodec.of(layout.settings)
        assert codec is not None
        self._codec = codec
        self._declined: set[str] = set()
        """The columns of an earlier row group that only Arrow could encode: they are not tried
        again.
        """
        self._groups: list[bytes] = []
        self._rows = 0
        stream.write(MAGIC)

    def write(self, rows: pa.Table) -> None:
        """Add ``rows`` as a row group.

        Each column is written before the next one is encoded, to save memory.
        """
        start = place = self._stream.tell()
        raw_size, described = 0, []
        for chunk in self._chunks(rows):
            for part in chunk.parts:
                self._stream.write(part)
            described.append(chunk.at(place))
            place += chunk.size
            raw_size += chunk.raw_size
        self._groups.append(_group(described, rows.num_rows, raw_size, start, place - start))
        self._rows += rows.num_rows

    def close(self) -> pq.FileMetaData:
        """Write the footer; return it as it was before ``ParquetLayout.change_footer``.

        In the returned footer, INT96 columns are still columns of 12 bytes.
        """
        empty = footer_of(_file_of(pa.Table.from_batches([], self._layout.schema), self._layout))
        rows_at, _ = find_member(empty, 0, _ROWS)
        _, rows_end = number_at(empty, rows_at)
        groups_at, _ = find_member(empty, 0, _ROW_GROUPS)
        _, groups_end = structs_at(empty, groups_at)
        footer = b"".join(
            (
                empty[:rows_at],
                serialize_number(self._rows),
                empty[rows_end:groups_at],
                serialize_structs(self._groups),
                empty[groups_end:],
            )
        )
        change = self._layout.change_footer
        self._stream.write(with_end(change(footer) if change else footer))
        return pq.read_metadata(io.BytesIO(MAGIC + with_end(footer)))

    def discard(self) -> None:
        """Do nothing: ``write`` keeps no rows in memory. The caller deletes the unfinished file."""

    def _chunks(self, rows: pa.Table) -> Iterator[ColumnChunk]:
        """Yield the column chunks of a row group, in the order of the columns. A nested column has
        several chunks.
        """
        encoders = {
            field.name: found
            for field, column in zip(rows.schema, rows.columns, strict=True)
            if not column.null_count and (found := self._encoder_of(field))
        }
        names = (name for name in rows.column_names if name not in self._repeated)
        rest = [name for name in names if name not in encoders]
        by_arrow = self._by_arrow(rows.select(rest)) if rest else {}
        sources: dict[str, ColumnChunk] = {}
        for name in rows.column_names:
            if name in self._repeated:
                yield sources.pop(self._repeated[name]).named(name)
                continue
            encoder = encoders.get(name)
            chunks = self._encoded(rows, name, encoder) if encoder else by_arrow.pop(name)
            if name in self._repeated.values():
                [sources[name]] = chunks
            yield from chunks

    def _encoded(self, rows: pa.Table, name: str, encoder: Encoder) -> list[ColumnChunk]:
        made = encoder(rows.column(name), rows.schema.field(name))
        if made is not None:
            return [made]
        self._declined.add(name)
        return self._by_arrow(rows.select([name]))[name]

    def _encoder_of(self, field: pa.Field) -> Encoder | None:
        """Return this package's encoder for a column; None if only Arrow can encode it."""
        if field.name in self._declined or not _is_encoded(field, self._layout):
            return None
        if field.name not in self._layout.dictionary_columns:
            return partial(encode_plain, codec=self._codec)
        return partial(encode_constant if is_plain(field.type) else encode_texts, codec=self._codec)

    def _by_arrow(self, rows: pa.Table) -> dict[str, list[ColumnChunk]]:
        content = _file_of(rows, self._layout)
        footer = footer_of(content)
        groups, _ = structs_at(footer, find_member(footer, 0, _ROW_GROUPS)[0])
        chunks, _ = structs_at(groups[0], find_member(groups[0], 0, _COLUMNS)[0])
        left = (found_chunk(content, chunk) for chunk in chunks)
        leaves = {field.name: len([*leaf_columns(pa.schema([field]))]) for field in rows.schema}
        return {name: [next(left) for _ in range(count)] for name, count in leaves.items()}


def _file_of(rows: pa.Table, layout: ParquetLayout) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    writer = arrow_writer(sink, rows.schema, layout)
    try:
        if rows.num_rows:
            writer.write_table(rows, row_group_size=rows.num_rows)
        writer.close()
    finally:
        writer.is_open = False
    return sink.getvalue()


def _group(described: Sequence[bytes], rows: int, raw_size: int, start: int, size: int) -> bytes:
    found = StructWriter()
    found.list(_COLUMNS, ThriftKind.STRUCT, described)
    found.i64(_BYTES, raw_size)
    found.i64(_GROUP_ROWS, rows)
    found.i64(_GROUP_OFFSET, start)
    found.i64(_STORED_BYTES, size)
    return found.close()
