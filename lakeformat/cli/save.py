# SPDX-License-Identifier: Apache-2.0
"""``--save FILE``: the file with the list of files that a command deletes."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from lakeformat.errors import LakeError

__all__ = ["open_saved"]


def open_saved(path: Path) -> TextIO:
    """Open the file of --save for writing, before the command deletes anything.

    Raise ``LakeError`` if the file cannot be opened.
    """
    try:
        return path.open("w", encoding="utf-8")
    except OSError as reason:
        todo = (
            f"create the directory {path.parent} first"
            if not path.parent.is_dir()
            else "name a file that can be written"
        )
        raise LakeError(
            f"--save {path}: {reason.strerror}. Nothing was done: {todo}, then run the command "
            "again"
        ) from None
