# SPDX-License-Identifier: Apache-2.0
"""Checks that pyarrow can safely describe the column chunks of a Parquet footer.

pyarrow does not catch C++ exceptions when it describes a column chunk, so a damaged number in a
footer would end the process. When a read begins, Arrow describes the same chunks, and pyarrow
catches the exceptions. So this module begins a read with the footer and a stream without data.
Arrow describes all chunks of a row group before it requests the first byte.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from lakeformat.types.count_text import counted

__all__ = ["require_sound_footer", "require_sound_rows", "require_sound_types"]

_BUFFER = 4096
"""The size of the reader's buffer in bytes; any size works, because nothing is read into it."""


def require_sound_footer(metadata: pq.FileMetaData, size: int) -> None:
    """Raise ``OSError`` or ``ArrowException`` if a footer contradicts itself or the file's size.

    ``size`` is the size of the file in bytes.
    """
    _require_sound_chunks(metadata, size)
    require_sound_rows(metadata)
    groups = range(metadata.num_row_groups)
    require_sound_types(metadata, groups, range(len(metadata.schema)))


def require_sound_rows(metadata: pq.FileMetaData) -> None:
    """Raise ``OSError`` if the row counts in a footer contradict each other.

    No row group may have a negative count, and the sum of all must be the row count of the file.
    """
    counts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if (least := min(counts, default=0)) < 0:
        raise OSError(f"its footer counts {least} rows in a row group")
    if sum(counts) != metadata.num_rows:
        raise OSError(
            f"its footer counts {counted(metadata.num_rows, 'row')}, but {sum(counts)} in its row "
            "groups"
        )


def require_sound_types(
    metadata: pq.FileMetaData, groups: Iterable[int], leaves: Collection[int]
) -> None:
    """Raise ``OSError`` if the type of a column chunk is not the type of its column in the schema.

    Pass only chunks that pyarrow can describe without a crash: chunks of a footer that
    ``require_sound_footer`` accepted, or chunks that were read.
    """
    for group in groups:
        for number in leaves:
            expected = metadata.schema.column(number).physical_type
            if (found := metadata.row_group(group).column(number).physical_type) != expected:
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
    """A stream with the size of the file but without bytes: the check needs only positions."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.is_asked = False
        """True as soon as Arrow has requested bytes.

        By then, Arrow has described all chunks of the row group. So a later error does not mean
        that the footer is damaged.
        """

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
