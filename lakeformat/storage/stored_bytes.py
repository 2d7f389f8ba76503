"""How much of a file is there."""

from __future__ import annotations

import os

from lakeformat.errors import NotFoundError
from lakeformat.storage.base import Storage

__all__ = ["stored_bytes"]


def stored_bytes(storage: Storage, path: str) -> int | None:
    """Its size now, asked of the file itself, as a listing may be late; None if it is gone."""
    try:
        with storage.open_input(path) as stream:
            return stream.seek(0, os.SEEK_END)
    except NotFoundError:
        return None
