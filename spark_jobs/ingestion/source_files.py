"""Which files a request means, and what they hold."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lakeformat as lake
from spark_jobs.ingestion.remote_files import is_remote, remote_paths, unpacked_name
from spark_jobs.job_requests.request import SourceFormat

__all__ = ["SourceFiles", "find_paths", "find_source"]

_ENDINGS: dict[str, SourceFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}

_PACKED_OTHERWISE = (".br", ".bz2", ".lz4", ".zst")


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of one format, by absolute path or address, in the order in which they are read."""

    format: SourceFormat
    paths: tuple[str, ...]
    options: Mapping[str, str] | None = field(default=None, repr=False)
    """Of the storage remote ones are in."""


def find_source(
    pattern: str,
    given: SourceFormat | None,
    paths: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> SourceFiles:
    """The files of a path or glob, or some of them, and what they hold."""
    paths = find_paths(pattern, options) if paths is None else paths
    for path in paths:
        if path.lower().endswith(_PACKED_OTHERWISE):  # Arrow would unpack it, unlooked at
            raise lake.InvalidRequestError(f"{path} is packed: unpack it, or pack it as .gz")
    formats = {given or _format_of(path) for path in paths}
    if len(formats) > 1:
        raise lake.InvalidRequestError(
            f"source {pattern!r} matches files of several formats: {', '.join(sorted(formats))}; "
            "narrow it to one"
        )
    return SourceFiles(formats.pop(), tuple(paths), options)


def find_paths(pattern: str, options: Mapping[str, str] | None = None) -> list[str]:
    """The files of a path or glob; hidden ones and markers such as ``_SUCCESS`` are not data."""
    if is_remote(pattern):
        return _data(remote_paths(pattern, options), pattern, "")
    local = os.path.expanduser(re.sub(r"^file:(//)?(?=/)", "", pattern))
    names = [local] if os.path.exists(local) else glob.glob(local, recursive=True)
    files = sorted(os.path.abspath(name) for name in names if os.path.isfile(name))
    return _data(files, pattern, _hint(local))


def _data(files: Sequence[str], pattern: str, hint: str) -> list[str]:
    paths = [path for path in files if not os.path.basename(path).startswith((".", "_"))]
    if not paths:
        raise lake.NotFoundError(f"source {pattern!r} matches no file{hint}")
    return paths


def _hint(local: str) -> str:
    return f": it is a directory, write {local.rstrip('/')}/*" if os.path.isdir(local) else ""


def _format_of(path: str) -> SourceFormat:
    ending = Path(unpacked_name(path)).suffix.lower()
    if ending not in _ENDINGS:
        raise lake.InvalidRequestError(
            f"{path}: the ending {ending!r} does not say what the file holds; "
            f"give 'format', or one of the endings {', '.join(_ENDINGS)}, with .gz behind it or not"
        )
    return _ENDINGS[ending]
