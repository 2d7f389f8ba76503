# SPDX-License-Identifier: Apache-2.0
"""Finds source files in a bucket or on HDFS, and opens them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache, partial
from itertools import chain
from typing import IO, TypeAlias

from lakeformat.files.foreign.plain_copy import Opener
from lakeformat.storage import FileInfo
from spark_jobs.ingestion.glob_names import is_match, is_unfinished, without_unfinished
from spark_jobs.runtime.job_files import open_place

__all__ = ["is_remote", "opener_of", "remote_files"]

_Listed: TypeAlias = Callable[[str], list[FileInfo]]
"""Returns the content of a directory."""

_SCHEME = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9+.-]+:(?://[^/]*|/[^/*?\[]*))(.*)")
"""A pattern for remote URIs. Its first group is a bucket, or HDFS with or without a host."""
_GLOB = re.compile(r"[*?\[]")


def is_remote(path: str) -> bool:
    """Return True if the path is a URI of a bucket or of HDFS, False for a path on this machine."""
    return _SCHEME.fullmatch(path) is not None


def remote_files(pattern: str, options: Mapping[str, str] | None) -> dict[str, FileInfo]:
    """Return the files that match a pattern, by URI. The rules are the same as for local files.

    If the URI of a file is exactly ``pattern``, return only this file. ``*``, ``?`` and ``[…]`` do
    not match a slash; ``**`` matches any number of directories.
    """
    match = _SCHEME.fullmatch(pattern)
    assert match is not None
    place, parts = match[1], [part for part in match[2].split("/") if part]
    listed = cache(partial(_listed, options))
    exact = "/".join((place, *parts))
    if "[" in exact and _is_file(exact, options):
        parent, _, name = exact.rpartition("/")
        beside = {info.name: info for info in listed(parent) if not info.is_directory}
        return {exact: beside[name]} if name in beside else {}
    if pattern.endswith("/") and _GLOB.search(pattern):  # directories only
        return {}
    if parts[-1:] == ["**"]:
        parts.append("*")
    folders, files = [place], parts.pop() if parts else ""
    for part in parts:
        found = (each for folder in folders for each in _folders(folder, part, listed, exact))
        folders = [*dict.fromkeys(found)]
    infos = {
        address: info
        for folder in folders
        for address, info in _children(folder, files, listed)
        if not info.is_directory
    }
    names = [exact] if exact in infos else without_unfinished(sorted(infos), exact)
    return {address: infos[address] for address in names}


def opener_of(path: str, options: Mapping[str, str] | None) -> Opener | None:
    """Return a function that opens a remote file; None for a file on this machine."""
    return partial(_opened, options) if is_remote(path) else None


def _opened(options: Mapping[str, str] | None, path: str) -> AbstractContextManager[IO[bytes]]:
    storage, inner = open_place(path, options)
    return storage.open_input(inner)


def _folders(folder: str, part: str, listed: _Listed, pattern: str) -> list[str]:
    if not _GLOB.search(part):
        return [f"{folder}/{part}"]
    found = [info for _, info in _children(folder, part, listed) if info.is_directory]
    if part != "**":
        return [f"{folder}/{info.name}" for info in found]
    entered = [info.name for info in found if not is_unfinished(info.name, pattern)]
    below = (_folders(f"{folder}/{name}", part, listed, pattern) for name in entered)
    return [folder, *chain.from_iterable(below)]


def _children(folder: str, part: str, listed: _Listed) -> list[tuple[str, FileInfo]]:
    return [(f"{folder}/{info.name}", info) for info in listed(folder) if is_match(info.name, part)]


def _listed(options: Mapping[str, str] | None, folder: str) -> list[FileInfo]:
    storage, inner = open_place(folder, options)
    return storage.list(inner)


def _is_file(address: str, options: Mapping[str, str] | None) -> bool:
    storage, inner = open_place(address, options)
    return storage.exists(inner)
