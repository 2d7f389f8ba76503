"""The folder of golden data: what other implementations wrote, and what reading it must give.

It is kept in archives beside this file, one for each folder inside it. ``GOLDEN=FOLDER`` takes
another folder with the same layout in their place.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["as_new_files", "golden_archive", "golden_folder"]

_IN_USE = ("format", "format-java", "merge")
"""Files that tests read in place; tests must not change them."""


def golden_archive(name: str) -> Path:
    """Return the archive of one folder of golden data."""
    given = os.environ.get("GOLDEN")
    here = Path(given).resolve(strict=True) if given else Path(__file__).parent
    return here / f"{name}.tar.xz"


def as_new_files(member: tarfile.TarInfo, place: str) -> tarfile.TarInfo:
    """Filter of an archive: files get the time at which they are unpacked.

    The age of files decides what a removal of orphans deletes.
    """
    return tarfile.data_filter(member, place).replace(mtime=None, deep=False)


@cache
def golden_folder() -> Path:
    """Return the folder, unpacked once for each process of tests."""
    given = os.environ.get("GOLDEN")
    if given:
        return Path(given).resolve(strict=True)
    place = Path(tempfile.mkdtemp(prefix="golden-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for name in _IN_USE:
        with tarfile.open(golden_archive(name)) as archive:
            archive.extractall(place, filter=as_new_files)
    return place
