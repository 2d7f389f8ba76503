# SPDX-License-Identifier: Apache-2.0
"""Reads values from the bytes of a file, and never reads beyond their end."""

from __future__ import annotations

import struct

from lakeformat.errors import CorruptTableError
from lakeformat.types.count_text import counted

__all__ = ["ByteCursor"]

_BIG_INT16 = struct.Struct(">h")
_BIG_INT32 = struct.Struct(">i")
_BIG_INT64 = struct.Struct(">q")
_LITTLE_UINT16 = struct.Struct("<H")
_LITTLE_UINT32 = struct.Struct("<I")
_LITTLE_UINT64 = struct.Struct("<Q")


class ByteCursor:
    """Reads forward from ``position``. Each ``CorruptTableError`` names the file and the offset in
    it.
    """

    def __init__(
        self, content: bytes | memoryview, source: str, *, remedy: str, base: int = 0
    ) -> None:
        """Start at the first byte of ``content``, which begins at offset ``base`` of file
        ``source``.

        ``remedy`` is the advice at the end of each error.
        """
        self._content = memoryview(content)
        self._source = source
        self._remedy = remedy
        self._base = base
        self.position = 0

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return len(self._content)

    def at(self, position: int) -> ByteCursor:
        """Return another cursor over the same bytes, at ``position``.

        Raise ``CorruptTableError`` if the position is outside of the bytes.
        """
        twin = ByteCursor(self._content, self._source, remedy=self._remedy, base=self._base)
        if not 0 <= position <= self.end:
            raise self.error(f"a reference to byte {self._base + position} is out of bounds")
        twin.position = position
        return twin

    def part(self, start: int, length: int) -> ByteCursor:
        """Return a cursor over ``length`` bytes from ``start`` on.

        Raise ``CorruptTableError`` if there are fewer bytes.
        """
        inner = self.at(start)
        content = inner.take(length)
        return ByteCursor(content, self._source, remedy=self._remedy, base=self._base + start)

    def take(self, length: int) -> memoryview:
        """Return the next ``length`` bytes without a copy; raise ``CorruptTableError`` if fewer are
        left.
        """
        start, end = self.position, self.position + length
        if length < 0 or end > self.end:
            left = self.end - start
            raise self.error(
                f"the next value needs {counted(length, 'byte')}, but {left} can be read"
            )
        self.position = end
        return self._content[start:end]

    def int8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def flag(self) -> bool:
        """Read a Java boolean, which is one byte."""
        return self.int8() != 0

    def int16(self) -> int:
        return int(_BIG_INT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(_BIG_INT32.unpack(self.take(4))[0])

    def int64(self) -> int:
        return int(_BIG_INT64.unpack(self.take(8))[0])

    def little_uint16(self) -> int:
        return int(_LITTLE_UINT16.unpack(self.take(2))[0])

    def little_uint32(self) -> int:
        return int(_LITTLE_UINT32.unpack(self.take(4))[0])

    def little_uint64(self) -> int:
        return int(_LITTLE_UINT64.unpack(self.take(8))[0])

    def count(self, what: str, *, at_most: int | None = None) -> int:
        """Return the next int32, the number of ``what``.

        Raise ``CorruptTableError`` if it is negative or larger than ``at_most``; None sets no
        limit. The error names ``what``.
        """
        value = self.int32()
        if value < 0 or (at_most is not None and value > at_most):
            raise self.error(f"the number of {what} cannot be {value}")
        return value

    def version(self, *supported: int) -> int:
        """Return the next byte, a format version.

        Raise ``CorruptTableError`` if the version is not in ``supported``.
        """
        value = self.int8()
        if value not in supported:
            known = " or ".join(map(str, supported))
            raise self.error(
                f"its format version is {value}, but this library reads {known}; if that "
                "format is newer, upgrade this library"
            )
        return value

    def error(self, found: str) -> CorruptTableError:
        """Return the error for damage near the current position; ``found`` describes the damage."""
        place = self._base + self.position
        return CorruptTableError(
            f"{self._source} is damaged near byte {place}: {found}; {self._remedy}"
        )
