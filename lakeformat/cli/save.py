"""``--save FILE``: what a command writes down beside what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from lakeformat.errors import LakeError

__all__ = ["open_saved"]


def open_saved(path: Path) -> TextIO:
    """The file, opened before anything is removed: else nobody would know what went."""
    try:
        return path.open("w", encoding="utf-8")
    except OSError as reason:
        todo = (
            f"make the directory {path.parent} first"
            if not path.parent.is_dir()
            else "name a file that can be written"
        )
        raise LakeError(
            f"--save {path}: {reason.strerror}. Nothing was done: {todo}, and run it again"
        ) from None
