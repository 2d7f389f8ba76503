"""Which format a data file has: its name's ending says so, and nothing else."""

from __future__ import annotations

from enum import StrEnum

from lakeformat.errors import UnsupportedError
from lakeformat.files.changelog_packs import PACK_FORMAT

__all__ = ["FileFormat", "file_extension", "format_of"]

# The text a compression adds to a file name; a codec that is not here adds its own name.
_COMPRESSION_EXTENSIONS = {
    "gzip": "gz",
    "bzip2": "bz2",
    "deflate": "deflate",
    "snappy": "snappy",
    "lz4": "lz4",
    "zstd": "zst",
}


class FileFormat(StrEnum):
    """The formats data files are read and written in, by the name options give them."""

    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"


def format_of(name: str, uri: str) -> FileFormat:
    """The format of a file by its name; ``uri`` is how an error names it."""
    parts = name.rpartition("/")[2].split(".")[1:]
    if len(parts) > 1 and parts[-1].lower() in _COMPRESSION_EXTENSIONS.values():
        parts = parts[:-1]
    ending = parts[-1].removeprefix(PACK_FORMAT) if parts else ""
    if ending in {known.value for known in FileFormat}:
        return FileFormat(ending)
    said = f"format {parts[-1]!r}" if parts else "no format in its name"
    known = ", ".join(FileFormat)
    raise UnsupportedError(f"{uri} has {said}; this version reads data files in {known}")


def file_extension(file_format: FileFormat, compression: str, *, include_compression: bool) -> str:
    """What a new file's name ends with, such as ``zst.parquet``, without the first dot."""
    if not include_compression or compression in ("none", ""):
        return str(file_format)
    return f"{_COMPRESSION_EXTENSIONS.get(compression, compression)}.{file_format}"
