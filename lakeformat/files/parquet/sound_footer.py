# SPDX-License-Identifier: Apache-2.0
"""Checks that pyarrow can safely describe the column chunks of a Parquet footer.

pyarrow describes a column chunk outside of the code that converts C++ exceptions to Python's, so a
damaged number in a footer would end the process. Starting a read describes the same chunks inside
of that code. So this module starts a read of an object that has the size of the file, but no bytes.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["require_sound_footer"]

_BUFFER = 4096
"""The size of the reader's buffer in bytes; any size works, because nothing is read into it."""


def require_sound_footer(metadata: pq.FileMetaData, size: int) -> None:
    """Raise ``OSError`` if the footer of a file of ``size`` bytes contradicts itself or the
    size.
    """
    _require_sound_chunks(metadata, size)
    schema = metadata.schema
    leaves = [schema.column(number).physical_type for number in range(len(schema))]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    counts = [group.num_rows for group in groups]
    if min(counts, default=0) < 0 or sum(counts) != metadata.num_rows:
        raise OSError(f"its footer counts {metadata.num_rows} rows, but {counts} in its row groups")
    for group in groups:
        for number, expected in enumerate(leaves):
            if (found := group.column(number).physical_type) != expected:
                raise OSError(
                    f"column {number} is {expected} in its schema, but {found} in a row group"
                )


def _require_sound_chunks(metadata: pq.FileMetaData, size: int) -> None:
    unread = _Unread(size)
    # With a buffer, a reader gets the position of every chunk of a group before it reads a byte.
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
    """A stream that has a size and no bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.is_asked = False
        """True as soon as bytes were requested: then all chunks are described."""

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
        return b""  # raising an exception would take longer than the whole check
