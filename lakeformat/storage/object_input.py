# SPDX-License-Identifier: Apache-2.0
"""Reads a file of an object store by ranges, in few requests."""

from __future__ import annotations

import io
from collections.abc import Callable

__all__ = ["READ_AHEAD", "RangeStream"]

READ_AHEAD = 1 << 20
"""The least number of bytes that a request fetches; a smaller file is fetched as a whole. A store
needs about as much time to begin an answer as to send this many bytes.
"""


class RangeStream(io.RawIOBase):
    """A seekable stream on ``fetch(start, end)``, which keeps the last range that was fetched.

    A file of up to ``READ_AHEAD`` bytes is fetched in one request. A read that begins in the last
    ``READ_AHEAD`` bytes of a larger file fetches all of those bytes, because footers are read
    backwards.
    """

    def __init__(self, size: int, fetch: Callable[[int, int], memoryview]) -> None:
        self._size = size
        self._fetch = fetch
        self._position = 0
        self._start = 0
        self._kept = memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        """The size of the file in bytes."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}, before the start of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._size if size is None or size < 0 else self._position + size
        end = min(self._size, wanted)
        if end <= self._position:
            return b""
        content = bytes(self._range(self._position, end))
        self._position = end
        return content

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        content = self.read(target.nbytes)
        target[: len(content)] = content
        return len(content)

    def _range(self, start: int, end: int) -> memoryview:
        if start < self._start or end > self._start + len(self._kept):
            last = min(self._size, max(end, start + READ_AHEAD))
            first = min(start, max(0, last - READ_AHEAD)) if last == self._size else start
            self._kept = self._fetch(first, last)
            self._start = first
        return self._kept[start - self._start : end - self._start]
