"""Source files in a bucket or on HDFS, or packed: found there, read from a copy on this machine.

Text is looked through before it is parsed, so it has to be read more than once.
"""

from __future__ import annotations

import gzip
import posixpath
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

import lakeformat as lake
from spark_jobs.runtime.job_files import open_place

__all__ = ["is_read_from_copy", "is_remote", "local_copy", "remote_paths", "unpacked_name"]

_PACKED = ".gz"
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


def is_read_from_copy(path: str) -> bool:
    """Whether a file cannot be read where it is and as it is."""
    return is_remote(path) or unpacked_name(path) != path


def unpacked_name(path: str) -> str:
    """A path without the ending that says how the file is packed."""
    return path[: -len(_PACKED)] if path.lower().endswith(_PACKED) else path


@contextmanager
def local_copy(path: str, options: Mapping[str, str] | None) -> Iterator[str]:
    """A file on this machine, not packed: itself, or a copy until the block ends."""
    if not is_read_from_copy(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="lake-source-") as folder:
        local = str(Path(folder, posixpath.basename(unpacked_name(path))))
        with _opened(path, options) as packed, open(local, "wb") as file:
            _copy(packed, file, path)
        try:
            yield local
        except lake.InvalidRequestError as reason:
            raise lake.InvalidRequestError(str(reason).replace(local, path)) from None


def _opened(path: str, options: Mapping[str, str] | None) -> AbstractContextManager[IO[bytes]]:
    if not is_remote(path):
        return open(path, "rb")
    storage, inner = open_place(path, options)
    return storage.open_input(inner)


def _copy(packed: IO[bytes], file: IO[bytes], path: str) -> None:
    """As it is, or unpacked; a packed file that was cut short is refused, not read in part."""
    if unpacked_name(path) == path:
        shutil.copyfileobj(packed, file)
        return
    try:
        with gzip.GzipFile(fileobj=packed) as content:
            shutil.copyfileobj(content, file)
    except (EOFError, gzip.BadGzipFile, zlib.error) as reason:
        raise lake.InvalidRequestError(f"cannot read {path}: {reason}") from None


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
