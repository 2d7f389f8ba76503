# SPDX-License-Identifier: Apache-2.0
"""A stream whose writes never fail: an error would make Arrow's ORC library end the process."""

from __future__ import annotations

import io
from typing import IO

__all__ = ["PatientStream"]


class PatientStream(io.RawIOBase):
    """Passes bytes on until the first error, and ignores all later bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._position = stream.tell()
        self._error: Exception | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, content: object) -> int:
        """Write ``content`` and return its size in bytes, even if the write fails.

        The first error is stored for ``raise_error``, because the library cannot handle it.
        """
        view = memoryview(content)  # type: ignore[arg-type]
        self._position += view.nbytes
        if self._error is None:
            try:
                self._stream.write(view)
            except Exception as error:  # noqa: BLE001 - raised by ``raise_error``
                self._error = error
        return view.nbytes

    def raise_error(self) -> None:
        """Raise the stored error; return if there is none."""
        if self._error is not None:
            raise self._error
