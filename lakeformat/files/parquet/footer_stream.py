"""Holds back the footer of a Parquet file until it is changed."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO

from lakeformat.files.parquet.end import END_BYTES, MAGIC, footer_of, with_end

__all__ = ["FooterStream"]


class FooterStream(io.RawIOBase):
    """Passes a Parquet file on as it is written, and its footer after the change."""

    def __init__(self, stream: IO[bytes], change: Callable[[bytes], bytes]) -> None:
        self._stream = stream
        self._change = change
        self._held: bytearray | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell() + len(self._held or b"")

    def write(self, content: object) -> int:
        view = memoryview(content)  # type: ignore[arg-type]
        if self._held is None:
            self._stream.write(view)
        else:
            self._held += view
        return view.nbytes

    def hold(self) -> None:
        """Keep the bytes written from here on: the footer and perhaps a few bytes before it."""
        self._held = bytearray()

    def release(self) -> None:
        """Write the kept bytes, with the changed footer."""
        assert self._held is not None
        held, self._held = bytes(self._held), None
        assert held.endswith(MAGIC)
        footer = footer_of(held)
        start = len(held) - END_BYTES - len(footer)
        self._stream.write(held[:start] + with_end(self._change(footer)))
