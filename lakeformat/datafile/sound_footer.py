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
    source = pa.PythonFile(_Unread(size), mode="r")
    # Where it will buffer ahead, a reader asks each chunk for its place before it reads a byte.
    file = pq.ParquetFile(source, metadata=metadata, pre_buffer=True)
    try:
        next(file.iter_batches(1, use_threads=False), None)
    except _ReadError as reason:
        # Arrow keeps the error in the reader, and its traceback would keep the reader: for ever.
        reason.__traceback__ = None


class _ReadError(Exception):
    """Somebody wanted bytes."""


class _Unread(io.RawIOBase):
    """A file that has a size and no bytes."""

    def __init__(self, size: int) -> None:
        self._size = size

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, position: int, whence: int = io.SEEK_SET, /) -> int:
        return position if whence == io.SEEK_SET else self._size + position

    def tell(self) -> int:
        return self._size

    def read(self, size: int = -1, /) -> bytes:
        raise _ReadError
