# SPDX-License-Identifier: Apache-2.0
"""Checks that a data file exists and is complete."""

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
    """The state of a file in storage."""

    is_whole: bool
    size: int | None
    """Size in bytes; None if the file is missing or its size is unavailable."""


def what_is_left(storage: Storage, path: str, written: int) -> FileRemains:
    """Check that a file exists and has its ``written`` size.

    The file is opened, because a listing may be outdated. A shorter file with a valid end is not
    truncated: it counts as complete. A file without read permission also counts as complete.
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
    """Return True if the bytes are a valid end: of Parquet its magic, of ORC its magic and
    length.
    """
    return end == MAGIC or end.startswith(b"ORC")
