# SPDX-License-Identifier: Apache-2.0
"""A column chunk of a Parquet file: the pages of one column in one row group, and their
metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from lakeformat.files.parquet.pages import Content, Encoding, PageKind, Pages
from lakeformat.files.parquet.thrift_compact import (
    Struct,
    StructWriter,
    ThriftKind,
    ThriftList,
    parse_struct,
    serialize_number,
    serialize_struct,
    serialize_unsigned,
)
from lakeformat.files.parquet.thrift_walk import find_member, member_places, number_at

__all__ = ["ColumnChunk", "bounds_of", "found_chunk", "levels", "made_chunk", "run_of"]

# Member numbers of a column chunk,
_OFFSET, _META_DATA = 2, 3
# of its description,
_TYPE, _ENCODINGS, _PATH, _CODEC, _VALUES, _RAW_SIZE, _SIZE = 1, 2, 3, 4, 5, 6, 7
_DATA, _DICTIONARY, _STATISTICS, _PAGE_COUNTS, _SIZES = 9, 11, 12, 13, 16
_EXTENT = frozenset((_RAW_SIZE, _SIZE, _DATA, _DICTIONARY))
# of the counts of its pages by kind,
_PAGE_KIND, _PAGE_ENCODING, _PAGES = 1, 2, 3
# of the sizes in it,
_TEXT_BYTES, _REPEATS, _LEVELS = 1, 2, 3
# and of statistics.
_OLD_MOST, _OLD_LEAST, _NULLS, _MOST, _LEAST, _MOST_IS_EXACT, _LEAST_IS_EXACT = 1, 2, 3, 5, 6, 7, 8


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """The pages of one column in one row group, and their metadata in the footer.

    ``description`` is the metadata. The offsets in it are right for pages that begin at offset
    ``start``. ``raw_size`` and ``size`` are the bytes of all pages before and after compression.
    """

    parts: Sequence[Content]
    description: bytes
    start: int
    raw_size: int
    size: int

    def at(self, place: int) -> bytes:
        """Return the metadata for pages that begin at offset ``place`` of the file."""
        content, distance = self.description, place - self.start
        described, _ = find_member(content, 0, _META_DATA)
        places, _ = member_places(content, described)
        # The later member first, because a change moves the bytes behind it.
        for member in (_DICTIONARY, _DATA):
            if (at := places.get(member)) is not None:
                number, end = number_at(content, at)
                content = content[:at] + serialize_number(number + distance) + content[end:]
        return content

    def named(self, column: str) -> ColumnChunk:
        """Return a chunk with the same pages, and with the column name ``column`` in its
        metadata.
        """
        chunk = parse_struct(self.description)
        described = cast(Struct, chunk[_META_DATA][1])
        described[_PATH] = ThriftKind.LIST, ThriftList(ThriftKind.BINARY, [column.encode()])
        return replace(self, description=serialize_struct(chunk))


def found_chunk(content: Content, description: bytes) -> ColumnChunk:
    """Return a column chunk of an existing file.

    ``content`` are the bytes of the file, ``description`` is the chunk's metadata in its footer.
    """
    described, _ = find_member(description, 0, _META_DATA)
    places, _ = member_places(description, described)
    numbers = {member: number_at(description, places[member])[0] for member in _EXTENT & {*places}}
    start = min(numbers[member] for member in (_DATA, _DICTIONARY) if member in numbers)
    size = numbers[_SIZE]
    return ColumnChunk(
        [content[start : start + size]], description, start, numbers[_RAW_SIZE], size
    )


def made_chunk(
    pages: Pages,
    column: str,
    physical_type: int,
    rows: int,
    statistics: bytes,
    *,
    nullable: bool,
    text_bytes: int | None = None,
) -> ColumnChunk:
    """Return a column chunk without nulls, with pages that this package has encoded.

    ``statistics`` must be serialised already. ``text_bytes`` is the total size of all texts; it is
    None for numbers.
    """
    encodings, counts = [Encoding.RLE, Encoding.PLAIN], [(PageKind.DATA, Encoding.PLAIN)]
    if pages.dictionary_size:
        encodings = [Encoding.PLAIN, Encoding.RLE, Encoding.RLE_DICTIONARY]
        counts = [
            (PageKind.DICTIONARY, Encoding.PLAIN),
            (PageKind.DATA, Encoding.RLE_DICTIONARY),
        ]
    described = StructWriter()
    described.i32(_TYPE, physical_type)
    described.list(_ENCODINGS, ThriftKind.I32, encodings)
    described.list(_PATH, ThriftKind.BINARY, [column.encode()])
    described.i32(_CODEC, pages.codec.number)
    described.i64(_VALUES, rows)
    described.i64(_RAW_SIZE, pages.raw_size)
    described.i64(_SIZE, pages.size)
    described.i64(_DATA, pages.dictionary_size)
    if pages.dictionary_size:
        described.i64(_DICTIONARY, 0)
    described.struct(_STATISTICS, statistics)
    described.list(_PAGE_COUNTS, ThriftKind.STRUCT, [_page_count(*each, pages) for each in counts])
    if nullable or text_bytes is not None:
        described.struct(_SIZES, _sizes(rows, text_bytes, nullable=nullable))
    chunk = StructWriter()
    chunk.i64(_OFFSET, 0)
    chunk.struct(_META_DATA, described.close())
    return ColumnChunk(pages.parts, chunk.close(), 0, pages.raw_size, pages.size)


def _page_count(kind: int, encoding: int, pages: Pages) -> bytes:
    found = StructWriter()
    found.i32(_PAGE_KIND, kind)
    found.i32(_PAGE_ENCODING, encoding)
    found.i32(_PAGES, 1 if kind == PageKind.DICTIONARY else pages.count)
    return found.close()


def _sizes(rows: int, text_bytes: int | None, *, nullable: bool) -> bytes:
    found = StructWriter()
    if text_bytes is not None:
        found.i64(_TEXT_BYTES, text_bytes)
    found.list(_REPEATS, ThriftKind.I64, [])
    found.list(_LEVELS, ThriftKind.I64, [0, rows] if nullable else [])
    return found.close()


def bounds_of(least: bytes, most: bytes, *, signed: bool) -> bytes:
    """Return serialised statistics with these bounds and no nulls.

    If ``signed`` is True, the bounds are also in the members that old readers read.
    """
    found = StructWriter()
    if signed:
        found.binary(_OLD_MOST, most)
        found.binary(_OLD_LEAST, least)
    found.i64(_NULLS, 0)
    found.binary(_MOST, most)
    found.binary(_LEAST, least)
    found.flag(_MOST_IS_EXACT, value=True)
    found.flag(_LEAST_IS_EXACT, value=True)
    return found.close()


def levels(rows: int, *, nullable: bool) -> bytes:
    """Return the definition levels at the start of a page without nulls; empty if not
    ``nullable``.
    """
    if not nullable:
        return b""
    run = run_of(rows, b"\1")
    return len(run).to_bytes(4, "little") + run


def run_of(rows: int, value: bytes) -> bytes:
    """Return the run-length encoding of ``rows`` equal values; ``value`` is the value as bytes."""
    return serialize_unsigned(rows << 1) + value
