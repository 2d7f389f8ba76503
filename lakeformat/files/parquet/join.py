# SPDX-License-Identifier: Apache-2.0
"""Joins the row groups of Parquet files into one file; pages are copied without decoding them.

Only the footer and the offsets in page indexes change. So a damaged page is copied unchanged, and
its checksum still shows the damage.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, cast

from lakeformat.files.parquet.end import END_BYTES, MAGIC, footer_length, with_end
from lakeformat.files.parquet.page_index import (
    PageIndex,
    bloom_filter,
    index_extents,
    page_index,
    set_bloom_filter,
)
from lakeformat.files.parquet.pages import CODECS
from lakeformat.files.parquet.thrift_compact import (
    Struct,
    ThriftKind,
    ThriftList,
    Value,
    number_in,
    parse_struct,
    serialize_struct,
    structs_in,
)

__all__ = ["CannotJoinError", "JoinedParquet", "RowGroups", "read_row_groups"]

_COPY_BYTES = 4 << 20

# Member numbers of the footer,
_ROWS, _ROW_GROUPS, _KEY_VALUES = 3, 4, 5
_ENCRYPTION = (8, 9)
# of a row group,
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7
# of a column chunk,
_FILE_PATH, _FILE_OFFSET, _META_DATA = 1, 2, 3
_CHUNK_ENCRYPTION = (8, 9)
# and of its description.
_PATH, _CODEC, _SIZE, _DATA, _INDEX, _DICTIONARY = 3, 4, 7, 9, 10, 11
_STATISTICS = 12
_NULLS = 3

_UNUSUAL = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""The errors of parsing a footer that lacks an expected part."""


class CannotJoinError(Exception):
    """The row groups of a file cannot be copied, so its rows must be decoded and written again.

    If the file is damaged, decoding raises the error that names it.
    """


@dataclass(frozen=True, slots=True)
class RowGroups:
    """The row groups that the footer of one file describes."""

    footer: Struct

    @property
    def rows(self) -> int:
        return number_in(self.footer, _ROWS)

    @property
    def count(self) -> int:
        return len(structs_in(self.footer, _ROW_GROUPS))

    @property
    def frame(self) -> dict[int, tuple[ThriftKind, Value]]:
        """The members of the footer that must be equal in all joined files.

        These are all except the number of rows and the row groups.
        """
        return {n: each for n, each in self.footer.items() if n not in (_ROWS, _ROW_GROUPS)}

    @property
    def sizes(self) -> list[int]:
        """The size of the pages of each row group, in bytes."""
        return [_extent(group)[1] for group in structs_in(self.footer, _ROW_GROUPS)]

    def empty_file(self) -> bytes:
        """Return the bytes of a file with the same Parquet columns, without rows and without
        Arrow's schema.
        """
        columns = {n: each for n, each in self.frame.items() if n != _KEY_VALUES}
        return MAGIC + with_end(_footer(columns, [], 0))

    def has_no_null(self, column: str) -> bool:
        """Return True if the statistics of all row groups count 0 nulls in a top-level column.

        Raise ``CannotJoinError`` if the footer lacks an expected part.
        """
        groups = structs_in(self.footer, _ROW_GROUPS)
        try:
            return all(self._nulls(group, column) == 0 for group in groups)
        except _UNUSUAL as reason:
            raise CannotJoinError from reason

    def _nulls(self, group: Struct, column: str) -> int | None:
        for chunk in structs_in(group, _COLUMNS):
            described = _described(chunk)
            path = cast(ThriftList, described[_PATH][1]).items
            if path == [column.encode()] and _STATISTICS in described:
                statistics = cast(Struct, described[_STATISTICS][1])
                return number_in(statistics, _NULLS) if _NULLS in statistics else None
        return None

    def are_compressed_by(self, codec: str) -> bool:
        """Return True if all column chunks are compressed by ``codec``."""
        wanted = CODECS.get(codec)
        return all(number_in(_described(chunk), _CODEC) == wanted for chunk in self._chunks())

    def _chunks(self) -> Iterator[Struct]:
        for group in structs_in(self.footer, _ROW_GROUPS):
            yield from structs_in(group, _COLUMNS)


def read_row_groups(stream: IO[bytes], size: int) -> RowGroups:
    """Return the row groups of a file of ``size`` bytes.

    Raise ``CannotJoinError`` if the footer lacks an expected part or contradicts itself, or if the
    file is encrypted.
    """
    end = size - END_BYTES
    try:
        tail = _bytes_at(stream, end, END_BYTES)
        length = footer_length(tail)
        found = RowGroups(parse_struct(_bytes_at(stream, end - length, length)))
        _require_sound(found, end - length)
    except _UNUSUAL as reason:
        raise CannotJoinError from reason
    if not tail.endswith(MAGIC) or any(each in found.footer for each in _ENCRYPTION):
        raise CannotJoinError
    return found


class JoinedParquet:
    """Writes a file with the row groups of all added files, in the order of addition.

    Each call of ``add`` adds one file.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._frame: Struct | None = None
        self._groups: list[Value] = []
        self._indexes: list[PageIndex] = []
        self._rows = 0
        stream.write(MAGIC)

    @property
    def size(self) -> int:
        """The number of bytes written so far, without the footer."""
        return self._stream.tell()

    def add(self, source: IO[bytes], groups: RowGroups) -> None:
        """Copy the row groups of a file from the stream ``source``.

        Raise ``CannotJoinError`` if the schema, or another part of ``RowGroups.frame``, differs
        from that of the first file.
        """
        frame = groups.frame
        if self._frame is None:
            self._frame = frame
        if frame != self._frame:
            raise CannotJoinError
        for group in structs_in(groups.footer, _ROW_GROUPS):
            start, length = _extent(group)
            moved_by = self.size - start
            _copy(source, start, length, self._stream)
            self._add_indexes(source, group, moved_by)
            _move(group, moved_by, ordinal=len(self._groups))
            self._groups.append(group)
            self._rows += number_in(group, _GROUP_ROWS)

    def _add_indexes(self, source: IO[bytes], group: Struct, moved_by: int) -> None:
        """Copy the Bloom filters of a row group behind its pages, and keep its page indexes for
        ``close``.
        """
        extent, read = _extent(group), partial(_bytes_at, source)
        for chunk in structs_in(group, _COLUMNS):
            if index := page_index(chunk, read, extent, moved_by):
                self._indexes.append(index)
            if content := bloom_filter(_described(chunk), read):
                set_bloom_filter(_described(chunk), self.size, len(content))
                self._stream.write(content)

    def close(self) -> bytes:
        """Write the page indexes and the footer; return the bytes from the footer on.

        The stream is not closed. At least one file must have been added.
        """
        assert self._frame is not None
        for index in self._indexes:
            self._stream.write(index.place_bounds(self.size))
        for index in self._indexes:
            self._stream.write(index.place_pages(self.size))
        end = with_end(_footer(self._frame, self._groups, self._rows))
        self._stream.write(end)
        return end


def _footer(frame: Struct, groups: list[Value], rows: int) -> bytes:
    footer: Struct = {
        **frame,
        _ROWS: (ThriftKind.I64, rows),
        _ROW_GROUPS: (ThriftKind.LIST, ThriftList(ThriftKind.STRUCT, groups)),
    }
    return serialize_struct(dict(sorted(footer.items())))


def _require_sound(found: RowGroups, end: int) -> None:
    """Raise ``CannotJoinError`` if the parts of a file overlap or end after offset ``end``.

    Raise it also if the rows of the row groups do not add up to the rows of the file.
    """
    groups = structs_in(found.footer, _ROW_GROUPS)
    chunks = [chunk for group in groups for chunk in structs_in(group, _COLUMNS)]
    indexes = (extent for each in chunks for extent in index_extents(each, _described(each)))
    free = len(MAGIC)
    for start, length in sorted([*map(_extent, groups), *indexes]):
        if start < free or length < 0:
            raise CannotJoinError
        free = start + length
    counts = [number_in(group, _GROUP_ROWS) for group in groups]
    if free > end or min(counts, default=0) < 0 or sum(counts) != found.rows:
        raise CannotJoinError


def _extent(group: Struct) -> tuple[int, int]:
    """Return the offset and the size of a row group's pages. Raise ``CannotJoinError`` if there is
    a gap between the pages.
    """
    pieces = sorted(_piece(chunk) for chunk in structs_in(group, _COLUMNS))
    start = end = pieces[0][0]
    for first, size in pieces:
        if first != end or size < 0:
            raise CannotJoinError
        end += size
    return start, end - start


def _piece(chunk: Struct) -> tuple[int, int]:
    described = _described(chunk)
    if any(each in chunk for each in (_FILE_PATH, *_CHUNK_ENCRYPTION)):
        raise CannotJoinError
    places = [number_in(described, each) for each in (_DATA, _DICTIONARY) if each in described]
    return min(place for place in places if place > 0), number_in(described, _SIZE)


def _move(group: Struct, distance: int, *, ordinal: int) -> None:
    """Add ``distance`` to the offsets of a row group's pages, and set its number to ``ordinal``."""
    _shift(group, _GROUP_OFFSET, distance)
    if _ORDINAL in group:
        group[_ORDINAL] = ThriftKind.I16, ordinal
    for chunk in structs_in(group, _COLUMNS):
        _shift(chunk, _FILE_OFFSET, distance)
        for member in (_DATA, _INDEX, _DICTIONARY):
            _shift(_described(chunk), member, distance)


def _shift(members: Struct, number: int, distance: int) -> None:
    if number in members and (place := number_in(members, number)) > 0:  # 0: unknown
        members[number] = members[number][0], place + distance


def _copy(source: IO[bytes], start: int, length: int, target: IO[bytes]) -> None:
    for place in range(start, start + length, _COPY_BYTES):
        target.write(_bytes_at(source, place, min(_COPY_BYTES, start + length - place)))


def _bytes_at(stream: IO[bytes], place: int, size: int) -> bytes:
    if place < 0:
        raise CannotJoinError
    stream.seek(place, os.SEEK_SET)
    found = stream.read(size)
    if len(found) != size:
        raise CannotJoinError
    return found


def _described(chunk: Struct) -> Struct:
    return cast(Struct, chunk[_META_DATA][1])
