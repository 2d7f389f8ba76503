# SPDX-License-Identifier: Apache-2.0
"""Finds source files in a bucket or on HDFS, and opens them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from functools import partial
from operator import itemgetter
from typing import IO

from lakeformat.files.foreign.plain_copy import Opener
from lakeformat.storage import FileInfo
from spark_jobs.runtime.job_files import open_place

__all__ = ["is_remote", "opener_of", "remote_files"]

_SCHEME = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9+.-]+:/+[^/*?\[]*)(.*)")


def is_remote(path: str) -> bool:
    """Return True if the path is a URI of a bucket or of HDFS, False for a path on this machine."""
    return _SCHEME.fullmatch(path) is not None


def remote_files(pattern: str, options: Mapping[str, str] | None) -> dict[str, FileInfo]:
    """Return the files that match a pattern, by URI. ``*``, ``?`` and ``[…]`` do not match a
    slash.
    """
    match = _SCHEME.fullmatch(pattern)
    assert match is not None
    place, parts = match[1], [part for part in match[2].split("/") if part]
    folders, files = [place], parts.pop() if parts else ""
    for part in parts:
        folders = [each for folder in folders for each in _folders(folder, part, options)]
    found = [each for folder in folders for each in _children(folder, files, options)]
    return {
        address: info for address, info in sorted(found, key=itemgetter(0)) if not info.is_directory
    }


def opener_of(path: str, options: Mapping[str, str] | None) -> Opener | None:
    """Return a function that opens a remote file; None for a file on this machine."""
    return partial(_opened, options) if is_remote(path) else None


def _opened(options: Mapping[str, str] | None, path: str) -> AbstractContextManager[IO[bytes]]:
    storage, inner = open_place(path, options)
    return storage.open_input(inner)


def _folders(folder: str, part: str, options: Mapping[str, str] | None) -> list[str]:
    if not re.search(r"[*?\[]", part):
        return [f"{folder}/{part}"]
    return [each for each, info in _children(folder, part, options) if info.is_directory]


def _children(
    folder: str, part: str, options: Mapping[str, str] | None
) -> list[tuple[str, FileInfo]]:
    storage, inner = open_place(folder, options)
    return [
        (f"{folder}/{info.name}", info)
        for info in storage.list(inner)
        if fnmatchcase(info.name, part)
    ]
