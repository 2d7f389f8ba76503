# SPDX-License-Identifier: Apache-2.0
"""A part of a file that reads like a file of its own."""

from __future__ import annotations

import io
from typing import IO

__all__ = ["FileSection"]


class FileSection(io.RawIOBase):
    """At most ``size`` bytes of ``stream``, from offset ``start`` on, as a stream of its own.

    Closing the section does not close ``stream``.
    """

    def __init__(self, stream: IO[bytes], start: int, size: int) -> None:
        self._stream = stream
        self._start, self._position = start, 0
        self._size = max(min(stream.seek(0, io.SEEK_END) - start, size), 0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: object) -> int:
        """Fill ``buffer`` with the next bytes of the section; return their number."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        count = max(min(len(view), self._size - self._position), 0)
        self._stream.seek(self._start + self._position)
        content = self._stream.read(count)
        view[: len(content)] = content
        self._position += len(content)
        return len(content)
