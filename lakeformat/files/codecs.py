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
"""For each format: the name of a compression in table options, and in the writer of the format."""

COMPRESSIONS = tuple({name: None for codecs in CODECS.values() for name in codecs})
"""The names in table options of all compressions that at least one format has."""


_ALIKE = (("none", "uncompressed", "null"), ("lz4", "snappy"), ("gzip", "zlib", "deflate"))
"""Groups of similar compressions; if a format lacks one of them, another of its group is used."""


@cache
def nearest_codec(file_format: str, compression: str) -> str:
    """Return the writer's name of a compression.

    If the format lacks the compression, the most similar one is used.
    """
    known = CODECS[file_format]
    alike = next((names for names in _ALIKE if compression in names), ())
    return next(known[name] for name in (compression, *alike, "zstd") if name in known)
