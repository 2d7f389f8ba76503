"""Writes the pages of some columns of a Parquet file again, where columns equal to them belong.

Encoding and compressing a column of numbers costs twenty times as much as a copy of the result.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import IO, NamedTuple

from lakeformat.datafile.footer_stream import FooterStream
from lakeformat.datafile.repeated_columns import RepeatedColumn
from lakeformat.datafile.thrift_walk import find_member, member_places, number_at

__all__ = ["CopiedPages", "RepeatingStream"]

# Members of the header of a page, and of what it says about a page of values.
_SIZE, _VALUES = 3, 5
_COUNT = 1


class CopiedPages(NamedTuple):
    """The pages of one column in one row group."""

    distance: int
    """From where the pages they are copied of begin."""
    size: int


class RepeatingStream(io.RawIOBase):
    """Passes on what Arrow writes, and follows its pages as far as columns are to be repeated.

    Arrow counts its own bytes, and says in its footer where its pages would be without the others.
    """

    def __init__(self, stream: IO[bytes] | FooterStream, columns: Sequence[RepeatedColumn]) -> None:
        self._stream = stream
        self._columns = columns
        self._sources = {column.source for column in columns}
        self._last = max(column.before for column in columns)
        self.copies: list[list[CopiedPages]] = []
        """Of each row group, those of each column."""
        self._rows = 0
        self._column = self._last
        self._values = 0
        self._left = 0
        self._header = b""
        self._starts: dict[int, int] = {}
        self._pages: dict[int, list[bytes]] = {}

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def start_group(self, rows: int) -> None:
        """What is written from here on are the pages of a row group."""
        assert rows, "columns of no rows have no page that they end with"
        assert self._column == self._last, "the row group before is not whole"
        self._rows, self._column = rows, -1
        self.copies.append([])
        self._start_column()

    def write(self, content: object) -> int:
        whole: bytes = bytes(content)  # type: ignore[call-overload]
        left = whole
        while left and self._column < self._last:
            left = self._follow(left)
        if left:
            self._stream.write(left)
        return len(whole)

    def _follow(self, content: bytes) -> bytes:
        """Pass on what belongs to one page; the rest of ``content``."""
        if not self._left:
            header, content = self._split_header(self._header + content)
            if header is None:
                return b""
            self._pass(header)
        part = content[: self._left]  # mostly all of it, which is not copied then
        self._pass(part)
        self._left -= len(part)
        if not self._left and not self._values:
            self._start_column()
        return content[len(part) :]

    def _split_header(self, content: bytes) -> tuple[bytes | None, bytes]:
        """The header of a page and what follows; None as long as it is not whole."""
        try:
            places, end = member_places(content, 0)
        except IndexError:
            self._header = content
            return None, b""
        self._header = b""
        self._left, _ = number_at(content, places[_SIZE])
        if _VALUES in places:  # else it is a dictionary
            count_at, _ = find_member(content, places[_VALUES], _COUNT)
            self._values -= number_at(content, count_at)[0]
        return content[:end], content[end:]

    def _pass(self, content: bytes) -> None:
        if content:
            self._stream.write(content)
        if self._column in self._sources:
            self._pages[self._column].append(content)

    def _start_column(self) -> None:
        """The next one, behind those that are repeated before it."""
        self._column += 1
        self._values = self._rows
        for each in self._columns:
            if each.before == self._column:
                pages, distance = self._pages[each.source], self.tell() - self._starts[each.source]
                self.copies[-1].append(CopiedPages(distance, sum(map(len, pages))))
                for page in pages:
                    self._stream.write(page)
        if self._column in self._sources:
            self._starts[self._column], self._pages[self._column] = self.tell(), []
        if self._column == self._last:
            self._pages.clear()  # a writer may wait long for its next row group
