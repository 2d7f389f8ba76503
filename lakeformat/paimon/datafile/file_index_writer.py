# SPDX-License-Identifier: Apache-2.0
"""Builds the file index of one data file from the rows that are written to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema_changes.file_index_rules import indexed_fields
from lakeformat.types.types import DataField

__all__ = ["INDEX_SUFFIX", "FileIndexWriter", "WantedIndex", "wanted_indexes"]

INDEX_SUFFIX = ".index"
"""The suffix of an index file; its name begins with the name of its data file."""


class IndexWriter(Protocol):
    """Builds one index of a column, given the column's values part by part."""

    def add(self, column: pa.ChunkedArray) -> None: ...

    def encode(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index that the table options request: the column, the type, and a function that makes a
    writer.
    """

    column: str
    index_type: str
    new_writer: Callable[[], IndexWriter]


def wanted_indexes(fields: Sequence[DataField], options: TableOptions) -> list[WantedIndex]:
    """Return the indexes that the options request for every new file."""
    return [
        WantedIndex(field.name, index_type, _new_writer(index_type, field, options))
        for index_type, field in indexed_fields(fields, options)
    ]


class FileIndexWriter:
    """Builds all indexes of one file while its rows are written."""

    def __init__(self, wanted: Sequence[WantedIndex]) -> None:
        """Start the indexes ``wanted``; skip an index that does not support the type of its column.

        Without an index, readers open the file more often, with the same result.
        """
        self._writers: list[tuple[WantedIndex, IndexWriter]] = []
        for each in wanted:
            with suppress(
                UnsupportedError
            ):  # an option of another engine names a column of an unsupported type
                self._writers.append((each, each.new_writer()))

    def add(self, rows: pa.Table) -> None:
        """Add the next rows of the file."""
        for each, writer in self._writers:
            writer.add(rows[each.column])

    def encode(self) -> bytes | None:
        """Return the file index with each index that could be built; None if none could."""
        from lakeformat.paimon.index.file_index import encode_file_index

        bodies: dict[str, dict[str, bytes | None]] = {}
        for each, writer in self._writers:
            # the index cannot hold a value, such as the lowest BIGINT
            with suppress(UnsupportedError):
                bodies.setdefault(each.column, {})[each.index_type] = writer.encode()
        found = {column: by_type for column, by_type in bodies.items() if by_type}
        return encode_file_index(found) if found else None


class _WholeColumn:
    """Collects all values of a column, because a bitmap can be built only from all of them."""

    def __init__(self, encode: Callable[[pa.ChunkedArray], bytes]) -> None:
        self._encode = encode
        self._chunks: list[pa.Array] = []

    def add(self, column: pa.ChunkedArray) -> None:
        self._chunks += column.chunks

    def encode(self) -> bytes:
        return self._encode(pa.chunked_array(self._chunks))


def _new_writer(
    index_type: str, field: DataField, options: TableOptions
) -> Callable[[], IndexWriter]:
    from lakeformat.paimon.index.file_index import (
        BloomFilterWriter,
        IndexType,
        encode_bitmap_index,
        encode_bsi,
        encode_range_bitmap,
    )

    name, data_type = field.name, field.type
    settings: dict[str, Any]
    encode: Callable[..., bytes]
    match index_type:
        case IndexType.BLOOM_FILTER:
            settings = {
                "items": options.of_column(TableOptions.file_index_bloom_filter_items, name),
                "false_positives": options.of_column(
                    TableOptions.file_index_bloom_filter_false_positives, name
                ),
            }
            return partial(BloomFilterWriter, data_type, **_given(settings))
        case IndexType.BITMAP:
            version = options.of_column(TableOptions.file_index_bitmap_version, name)
            settings = {
                "version": None if version is None else int(version),
                "block_size": options.of_column(TableOptions.file_index_bitmap_block_bytes, name),
            }
            encode = encode_bitmap_index
        case IndexType.BSI:
            settings, encode = {}, encode_bsi
        case _:
            chunk_size = options.of_column(TableOptions.file_index_range_bitmap_chunk_bytes, name)
            settings, encode = {"chunk_size": chunk_size}, encode_range_bitmap
    return partial(_WholeColumn, partial(encode, data_type=data_type, **_given(settings)))


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}
