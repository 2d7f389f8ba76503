# SPDX-License-Identifier: Apache-2.0
"""``--save FILE``: the file with the list of files that a command deletes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lakeformat.errors import LakeError

if TYPE_CHECKING:
    from lakeformat import Removal

__all__ = ["saving"]


@contextmanager
def saving(path: Path) -> Iterator[Callable[[Removal], None]]:
    """Open the file of --save, and yield a function that writes a removal to it as a line of JSON.

    The list replaces an earlier list in the file. If the command fails before the first removal,
    the earlier list is kept. Raise ``LakeError`` if the file cannot be opened.
    """
    with _opened(path) as file:
        is_new = False

        def begin() -> None:
            nonlocal is_new
            if not is_new and path.is_file():
                file.truncate(0)
            is_new = True

        def save(removal: Removal) -> None:
            begin()
            print(json.dumps(removal.to_dict()), file=file)

        yield save
        begin()


def _opened(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as reason:
        todo = (
            f"Create the directory {path.parent} first"
            if not path.parent.is_dir()
            else "Name a file that can be written"
        )
        raise LakeError(
            f"--save {path} cannot be written: {reason.strerror}. Nothing was done. {todo}, then "
            "run the command again"
        ) from None
