"""Finds out whether a Parquet footer may be asked for its column chunks.

pyarrow describes a column chunk outside of anything that turns C++ exceptions into Python's: a
footer with a damaged number would end the process. The same chunks are described safely where a
read begins, so one is begun here on a file that has a size and no bytes.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["require_sound_footer"]

_BUFFER = 4096
"""Any size will do: nothing comes to be in it."""


def require_sound_footer(metadata: pq.FileMetaData, size: int) -> None:
    """Raise ``OSError`` if the footer of a file of ``size`` bytes contradicts itself."""
    _require_sound_chunks(metadata, size)
    schema = metadata.schema
    leaves = [schema.column(number).physical_type for number in range(len(schema))]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    counts = [group.num_rows for group in groups]
    if min(counts, default=0) < 0 or sum(counts) != metadata.num_rows:
        raise OSError(f"its footer says {metadata.num_rows} rows and has groups of {counts}")
    for group in groups:
        for number, expected in enumerate(leaves):
            if (found := group.column(number).physical_type) != expected:
                raise OSError(f"column {number} is {expected} in its footer, and {found} as well")


def _require_sound_chunks(metadata: pq.FileMetaData, size: int) -> None:
    unread = _Unread(size)
    # Through a buffer, a reader asks every chunk of a group for its place before it reads a byte.
    file = pq.ParquetFile(
        pa.PythonFile(unread, mode="r"), metadata=metadata, pre_buffer=False, buffer_size=_BUFFER
    )
    for group in range(metadata.num_row_groups):
        unread.is_asked = False
        try:
            next(file.iter_batches(1, row_groups=[group], use_threads=False), None)
        except (OSError, pa.ArrowException):
            if not unread.is_asked:
                raise


class _Unread(io.RawIOBase):
    """A file that has a size and no bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.is_asked = False
        """Whether somebody wanted bytes."""

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, position: int, whence: int = io.SEEK_SET, /) -> int:
        return position if whence == io.SEEK_SET else self._size + position

    def tell(self) -> int:
        return self._size

    def read(self, size: int = -1, /) -> bytes:
        self.is_asked = True
        return b""  # an exception would cost more than all the rest
