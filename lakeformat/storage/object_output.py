# SPDX-License-Identifier: Apache-2.0
"""Writes a file of any size to an object store, with a few parts of it in memory."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from queue import Queue

__all__ = ["PART_BYTES", "UploadStream"]

PART_BYTES = 8 << 20
"""The size in bytes of one part of a large upload. A store takes at most 10,000 parts, so files may
have up to 80 GB.
"""
_WAITING_PARTS = 1


class _Aborted(Exception):
    """Raised inside of an upload to abort it. The upload then deletes the parts that were sent."""


class UploadStream(io.RawIOBase):
    """A stream that uploads an object: with ``put`` if it fits into one part, else with ``upload``.

    ``upload`` runs in a thread and gets an iterator of parts. If the iterator raises an error,
    ``upload`` must abort the upload and raise an error. The object is visible only after
    ``finish``.
    """

    def __init__(
        self, put: Callable[[bytes], None], upload: Callable[[Iterator[bytes]], None]
    ) -> None:
        self._put = put
        self._upload = upload
        self._buffer = bytearray()
        self._position = 0
        self._parts: Queue[bytes | _Aborted | None] = Queue(_WAITING_PARTS)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, content: object) -> int:
        view = memoryview(content).cast("B")  # type: ignore[arg-type]
        for start in range(0, view.nbytes, PART_BYTES):
            self._buffer += view[start : start + PART_BYTES]
            while len(self._buffer) > PART_BYTES:
                self._send()
        self._position += view.nbytes
        return view.nbytes

    def finish(self) -> None:
        """Make the content visible; raise the error of the upload if it failed."""
        if self._thread is None:
            self._put(bytes(self._buffer))
            return
        self._send()
        self._end(None)
        self._raise_error()

    def abort(self) -> None:
        """Discard the content and the parts that were sent; errors are ignored."""
        self._buffer.clear()
        if self._thread is not None:
            self._end(_Aborted())

    def _send(self) -> None:
        if self._thread is None:
            # A daemon: a writer that ends without closing must not keep the process alive.
            self._thread = threading.Thread(target=self._run, name="lake-upload", daemon=True)
            self._thread.start()
        self._raise_error()
        with memoryview(self._buffer) as view:
            part = bytes(view[:PART_BYTES])
        del self._buffer[:PART_BYTES]
        self._parts.put(part)

    def _end(self, last: _Aborted | None) -> None:
        assert self._thread is not None
        if self._thread.is_alive():
            self._parts.put(last)
        self._thread.join()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        ended = False

        def parts() -> Iterator[bytes]:
            nonlocal ended
            while isinstance(part := self._parts.get(), bytes):
                yield part
            ended = True
            if part is not None:
                raise part

        try:
            self._upload(parts())
        except BaseException as error:  # noqa: BLE001 - raised where the stream is written
            self._error = error
            # The writer may wait for room, so take its parts until it notices the error.
            while not ended:
                ended = not isinstance(self._parts.get(), bytes)
