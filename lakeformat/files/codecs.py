"""The compressions each file format can have, by the names that options give them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CODECS", "COMPRESSIONS", "codec_of", "nearest_codec"]

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
"""Of each format: names options have, as in Java, and what the writer of the format calls them."""

COMPRESSIONS = tuple({name: None for codecs in CODECS.values() for name in codecs})
"""Every name some format knows."""


_ALIKE = (("none", "uncompressed", "null"), ("lz4", "snappy"), ("gzip", "zlib", "deflate"))
"""Compressions that stand in for one another where a format lacks one."""


def codec_of(file_format: str, compression: str) -> str:
    """Return what the writer of a format calls a compression that the format has."""
    return CODECS[file_format][compression]


def nearest_codec(file_format: str, compression: str) -> str:
    """Return the codec of a compression, or of the one most like it that the format has."""
    known = CODECS[file_format]
    alike = next((names for names in _ALIKE if compression in names), ())
    return next(known[name] for name in (compression, *alike, "zstd") if name in known)
