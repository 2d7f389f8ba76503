"""Which files a request means, and what they hold."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lakeformat as lake
from spark_jobs.request import SourceFormat

__all__ = ["SourceFiles", "find_paths", "find_source"]

_ENDINGS: dict[str, SourceFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of one format, by absolute path, in the order in which they are read."""

    format: SourceFormat
    paths: tuple[str, ...]


def find_source(
    pattern: str, given: SourceFormat | None, paths: Sequence[str] | None = None
) -> SourceFiles:
    """The files of a path or glob, or some of them, and what they hold."""
    paths = find_paths(pattern) if paths is None else paths
    formats = {given or _format_of(path) for path in paths}
    if len(formats) > 1:
        raise lake.InvalidRequestError(
            f"source {pattern!r} matches files of several formats: {', '.join(sorted(formats))}; "
            "narrow it to one"
        )
    return SourceFiles(formats.pop(), tuple(paths))


def find_paths(pattern: str) -> list[str]:
    """The files of a path or glob; hidden ones and markers such as ``_SUCCESS`` are not data."""
    if re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:/", pattern):
        raise lake.UnsupportedError(f"source {pattern!r}: this version reads local files only")
    local = os.path.expanduser(re.sub(r"^file:(//)?(?=/)", "", pattern))
    names = [local] if os.path.exists(local) else glob.glob(local, recursive=True)
    paths = sorted(os.path.abspath(name) for name in names if _is_data(name))
    if not paths:
        raise lake.NotFoundError(f"source {pattern!r} matches no file{_hint(local)}")
    return paths


def _is_data(name: str) -> bool:
    return os.path.isfile(name) and not os.path.basename(name).startswith((".", "_"))


def _hint(local: str) -> str:
    return f": it is a directory, write {local.rstrip('/')}/*" if os.path.isdir(local) else ""


def _format_of(path: str) -> SourceFormat:
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise lake.InvalidRequestError(
            f"{path}: the ending {ending!r} does not say what the file holds; "
            f"give 'format', or one of the endings {', '.join(_ENDINGS)}"
        )
    return _ENDINGS[ending]
