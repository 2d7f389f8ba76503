# SPDX-License-Identifier: Apache-2.0
"""The compressions of each file format, by their names in options."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

__all__ = ["CODECS", "COMPRESSIONS", "nearest_codec"]

CODECS: Mapping[str, Mapping[str, str]] = {
    "parquet": {
        "zstd": "zstd",
        "snappy": "snappy",
        "lz4": "lz4",
        "lz4_raw": "lz4",
        "gzip": "gzip",
        "brotli": "brotli",
        "none": "none",
        "uncompressed": "none",
    },
    "orc": {
        "zstd": "zstd",
        "snappy": "snappy",
        "lz4": "lz4",
        "zlib": "zlib",
        "none": "uncompressed",
    },
    "avro": {
        "zstd": "zstandard",
        "zstandard": "zstandard",
        "snappy": "snappy",
        "deflate": "deflate",
        "bzip2": "bzip2",
        "xz": "xz",
        "null": "null",
    },
}
"""The compressions of each format: the key is the name in table options, and the value is the name
that the writer of the format uses.
"""

COMPRESSIONS = tuple({name: None for codecs in CODECS.values() for name in codecs})
"""The compressions that at least one format has, by their names in table options."""


_ALIKE = (("none", "uncompressed", "null"), ("lz4", "snappy"), ("gzip", "zlib", "deflate"))
"""Groups of similar compressions: a format that lacks one uses another of the same group."""


@cache
def nearest_codec(file_format: str, compression: str) -> str:
    """Return the name by which the writer of ``file_format`` knows a compression.

    ``compression`` is its name in the table options. If the format lacks the compression, return
    the name of a similar one, or else of zstd.
    """
    known = CODECS[file_format]
    alike = next((names for names in _ALIKE if compression in names), ())
    return next(known[name] for name in (compression, *alike, "zstd") if name in known)
