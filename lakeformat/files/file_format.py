# SPDX-License-Identifier: Apache-2.0
"""The format of a data file, by the ending of its name."""

from __future__ import annotations

from enum import StrEnum

from lakeformat.errors import UnsupportedError
from lakeformat.files.changelog_packs import PACK_FORMAT

__all__ = ["FileFormat", "file_extension", "format_of"]

# The part of a file name for a compression; a codec that is not listed adds its own name.
_COMPRESSION_EXTENSIONS = {
    "gzip": "gz",
    "bzip2": "bz2",
    "deflate": "deflate",
    "snappy": "snappy",
    "lz4": "lz4",
    "zstd": "zst",
}


class FileFormat(StrEnum):
    """The formats of data files, with their names in table options."""

    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"


def format_of(name: str, uri: str) -> FileFormat:
    """Return the format that the ending of a file name shows.

    Raise ``UnsupportedError``, which names the file by ``uri``, for any other ending.
    """
    parts = name.rpartition("/")[2].split(".")[1:]
    if len(parts) > 1 and parts[-1].lower() in _COMPRESSION_EXTENSIONS.values():
        parts = parts[:-1]
    ending = parts[-1].removeprefix(PACK_FORMAT) if parts else ""
    if ending in {known.value for known in FileFormat}:
        return FileFormat(ending)
    said = f"the format {parts[-1]!r}" if parts else "no format in its name"
    known = ", ".join(FileFormat)
    raise UnsupportedError(
        f"{uri} has {said}; this version reads data files in {known}: read the table with the "
        "engine that wrote the file"
    )


def file_extension(file_format: FileFormat, compression: str, *, include_compression: bool) -> str:
    """Return the ending of a new file's name, such as ``parquet``.

    With ``include_compression``, a compression other than ``none`` is part of the ending, such as
    ``zst.parquet``.
    """
    if not include_compression or compression in ("none", ""):
        return str(file_format)
    return f"{_COMPRESSION_EXTENSIONS.get(compression, compression)}.{file_format}"
