"""Whether a data file is there as it was written."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lakeformat.errors import NotFoundError, UnavailableError
from lakeformat.files.parquet.end import MAGIC
from lakeformat.storage import Storage

__all__ = ["FileRemains", "what_is_left"]

_END_BYTES = 4


@dataclass(frozen=True, slots=True)
class FileRemains:
    """What is there of a file."""

    is_whole: bool
    size: int | None
    """In bytes; None where it is gone, or cannot be asked for its size now."""


def what_is_left(storage: Storage, path: str, written: int) -> FileRemains:
    """Of a file of so many bytes; asked of the file itself, as a listing may be late.

    A shorter one with the end of its format is another file, and may be read. One that nobody may
    open counts as whole: that it is there is all that is known.
    """
    if not storage.exists(path):
        return FileRemains(is_whole=False, size=None)
    try:
        with storage.open_input(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            is_whole = size >= written
            if not is_whole and size >= _END_BYTES:
                stream.seek(size - _END_BYTES)
                is_whole = _ends_a_file(stream.read(_END_BYTES))
            return FileRemains(is_whole, size)
    except NotFoundError:
        return FileRemains(is_whole=False, size=None)
    except (UnavailableError, OSError):
        return FileRemains(is_whole=True, size=None)


def _ends_a_file(end: bytes) -> bool:
    """Parquet ends with its name, ORC with its name and the length of what tells about it."""
    return end == MAGIC or end.startswith(b"ORC")
