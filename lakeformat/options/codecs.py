"""The compressions each file format can have, by the names that options give them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CODECS", "COMPRESSIONS", "codec_of"]

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


def codec_of(file_format: str, compression: str) -> str:
    """Return what the writer of a format calls a compression that the format has."""
    return CODECS[file_format][compression]
