"""A stream that never fails while it is written: else Arrow's ORC library ends the process."""

from __future__ import annotations

import io
from typing import IO

__all__ = ["PatientStream"]


class PatientStream(io.RawIOBase):
    """Passes bytes on until the first error, swallows the rest, and tells when asked."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._position = stream.tell()
        self._error: Exception | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, content: object) -> int:
        """Always succeeds; the library calls it from places where nothing may be raised."""
        view = memoryview(content)  # type: ignore[arg-type]
        self._position += view.nbytes
        if self._error is None:
            try:
                self._stream.write(view)
            except Exception as error:  # noqa: BLE001 - raised by ``raise_error``
                self._error = error
        return view.nbytes

    def raise_error(self) -> None:
        """Raise what went wrong so far."""
        if self._error is not None:
            raise self._error
