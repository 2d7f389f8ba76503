"""Avro object-container files, read and written whole, with errors that name the file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro

from lakeformat.errors import CorruptTableError

__all__ = ["avro_codec", "check_version", "decode_avro_file", "encode_avro_file"]

_CODECS = {"zstd": "zstandard"}


def avro_codec(compression: str) -> str:
    """What Avro calls a compression that is given in the words of the table options."""
    return _CODECS.get(compression, compression)


def encode_avro_file(
    schema: dict[str, Any],
    records: Iterable[dict[str, Any]],
    *,
    compression: str,
    zstd_level: int,
) -> bytes:
    """Records as the content of one file; ``compression`` in the words of the table options."""
    codec = avro_codec(compression)
    level = zstd_level if codec == "zstandard" else None
    buffer = io.BytesIO()
    fastavro.writer(
        buffer, fastavro.parse_schema(schema), records, codec=codec, codec_compression_level=level
    )
    return buffer.getvalue()


def decode_avro_file(content: bytes, uri: str) -> list[dict[str, Any]]:
    """Every record of a file, by the file's own schema."""
    try:
        return [_record(value, uri) for value in fastavro.reader(io.BytesIO(content))]
    except CorruptTableError:
        raise
    except Exception as reason:  # fastavro and its codecs raise whatever a broken byte leads to
        raise CorruptTableError(
            f"{uri} ({len(content)} bytes) is not a readable Avro file: {reason!r}; "
            "restore the file from a backup or roll the table back to an earlier snapshot"
        ) from reason


def check_version(records: Iterable[Mapping[str, Any]], expected: int, uri: str) -> None:
    """Refuse a file of another format version, which would be misread."""
    for record in records:
        if record.get("_VERSION") != expected:
            raise CorruptTableError(
                f"{uri} has format version {record.get('_VERSION')}, this version reads {expected}"
            )


def _record(value: Any, uri: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CorruptTableError(f"{uri} holds {type(value).__name__} where a record belongs")
    return value
