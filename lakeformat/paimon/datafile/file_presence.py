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
    """The completeness and the size of a data file."""

    is_whole: bool
    size: int | None
    """The size in bytes; None if the file is missing or cannot be opened."""


def what_is_left(storage: Storage, path: str, written: int) -> FileRemains:
    """Return the completeness and size of a file; ``written`` is its size in the manifest entry.

    The file is opened, because a listing may be outdated. A file shorter than ``written`` counts as
    complete if it ends like a Parquet or ORC file. A file that exists but cannot be read now counts
    as complete, with None as its size. A missing file is incomplete.
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
    """Return True if ``end`` is the last four bytes of a complete Parquet or ORC file."""
    return end == MAGIC or end.startswith(b"ORC")
