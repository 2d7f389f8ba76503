"""Source files in a bucket or on HDFS: found there, and read from a copy on this machine.

Text is looked through before it is parsed, so it has to be read more than once.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import lakeformat as lake
from spark_jobs.job_files import open_place

__all__ = ["is_remote", "local_copy", "remote_paths"]

_SCHEME = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9+.-]+:/+[^/*?\[]*)(.*)")


def is_remote(path: str) -> bool:
    """Whether an address is none of this machine's file system."""
    return _SCHEME.fullmatch(path) is not None


def remote_paths(pattern: str, options: Mapping[str, str] | None) -> list[str]:
    """The addresses of files that a pattern means; ``*``, ``?`` and ``[…]`` stop at a slash."""
    match = _SCHEME.fullmatch(pattern)
    assert match is not None
    place, parts = match[1], [part for part in match[2].split("/") if part]
    found = [place]
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        found = [each for folder in found for each in _children(folder, part, options, is_last)]
    return sorted(found)


@contextmanager
def local_copy(path: str, options: Mapping[str, str] | None) -> Iterator[str]:
    """The path of a file on this machine; of a remote one a copy, until the block ends."""
    if not is_remote(path):
        yield path
        return
    storage, inner = open_place(path, options)
    with tempfile.TemporaryDirectory(prefix="lake-source-") as folder:
        local = str(Path(folder, posixpath.basename(path)))
        with storage.open_input(inner) as remote, open(local, "wb") as file:
            shutil.copyfileobj(remote, file)
        try:
            yield local
        except lake.InvalidRequestError as reason:
            raise lake.InvalidRequestError(str(reason).replace(local, path)) from None


def _children(
    folder: str, part: str, options: Mapping[str, str] | None, is_last: bool
) -> Sequence[str]:
    if not is_last and not re.search(r"[*?\[]", part):
        return [f"{folder}/{part}"]
    storage, inner = open_place(folder, options)
    return [
        f"{folder}/{info.name}"
        for info in storage.list(inner)
        if info.is_directory is not is_last and fnmatchcase(info.name, part)
    ]
