"""Builds the file index of one data file from the rows that go into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.index.file_index import (
    IndexType,
    encode_bitmap_index,
    encode_bloom_filter,
    encode_bsi,
    encode_file_index,
    encode_range_bitmap,
)
from lakeformat.options import TableOptions
from lakeformat.schema_changes.file_index_rules import indexed_columns
from lakeformat.types import DataField

__all__ = ["INDEX_SUFFIX", "FileIndexWriter", "WantedIndex", "wanted_indexes"]

INDEX_SUFFIX = ".index"
"""What the name of an index beside its data file has more than that one's."""


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """One index of one column."""

    column: str
    index_type: str
    encode: Callable[[pa.ChunkedArray], bytes]


def wanted_indexes(fields: Sequence[DataField], options: TableOptions) -> list[WantedIndex]:
    """What the options ask of every new file."""
    by_name = {field.name: field for field in fields}
    return [
        WantedIndex(column, index_type, _encoder(index_type, by_name[column], options))
        for index_type, columns in indexed_columns(options).items()
        for column in columns
    ]


class FileIndexWriter:
    """Keeps the indexed columns of one file until it is whole: bitmaps need all rows at once."""

    def __init__(self, wanted: Sequence[WantedIndex]) -> None:
        self._wanted = wanted
        self._held: dict[str, list[pa.ChunkedArray]] = {each.column: [] for each in wanted}

    def add(self, rows: pa.Table) -> None:
        """Rows that follow those already added."""
        for column, held in self._held.items():
            held.append(rows[column])

    def encode(self) -> bytes | None:
        """The container; None if nothing could be indexed."""
        bodies: dict[str, dict[str, bytes | None]] = {}
        for each in self._wanted:
            held = self._held[each.column]
            values = pa.chunked_array([chunk for part in held for chunk in part.chunks])
            try:
                bodies.setdefault(each.column, {})[each.index_type] = each.encode(values)
            except UnsupportedError:
                # A value no such index has room for, like the lowest BIGINT: without an index
                # the file is read whenever it may matter, which is right if not fast.
                continue
        found = {column: by_type for column, by_type in bodies.items() if by_type}
        return encode_file_index(found) if found else None


def _encoder(
    index_type: str, field: DataField, options: TableOptions
) -> Callable[[pa.ChunkedArray], bytes]:
    name, data_type = field.name, field.type
    settings: dict[str, Any]
    match index_type:
        case IndexType.BLOOM_FILTER:
            settings = {
                "items": options.of_column(TableOptions.file_index_bloom_filter_items, name),
                "false_positives": options.of_column(
                    TableOptions.file_index_bloom_filter_false_positives, name
                ),
            }
            encode: Callable[..., bytes] = encode_bloom_filter
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
    given = {key: value for key, value in settings.items() if value is not None}
    return partial(encode, data_type=data_type, **given)
