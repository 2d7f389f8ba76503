"""Finds source files in a bucket or on HDFS, and opens them to be copied to this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from functools import partial
from typing import IO

from lakeformat.files.foreign.plain_copy import Opener
from spark_jobs.runtime.job_files import open_place

__all__ = ["is_remote", "opener_of", "remote_paths"]

_SCHEME = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9+.-]+:/+[^/*?\[]*)(.*)")


def is_remote(path: str) -> bool:
    """Return True if an address is not in this machine's file system."""
    return _SCHEME.fullmatch(path) is not None


def remote_paths(pattern: str, options: Mapping[str, str] | None) -> list[str]:
    """Return the addresses of files that match a pattern; ``*``, ``?`` and ``[…]`` stop at a
    slash.
    """
    match = _SCHEME.fullmatch(pattern)
    assert match is not None
    place, parts = match[1], [part for part in match[2].split("/") if part]
    found = [place]
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        found = [each for folder in found for each in _children(folder, part, options, is_last)]
    return sorted(found)


def opener_of(path: str, options: Mapping[str, str] | None) -> Opener | None:
    """Return a function that opens a remote file; None for a file of this machine."""
    return partial(_opened, options) if is_remote(path) else None


def _opened(options: Mapping[str, str] | None, path: str) -> AbstractContextManager[IO[bytes]]:
    storage, inner = open_place(path, options)
    return storage.open_input(inner)


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
