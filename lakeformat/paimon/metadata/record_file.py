# SPDX-License-Identifier: Apache-2.0
"""Encodes and decodes whole files of metadata records: Avro, ORC or Parquet.

New files have the format ``manifest.format``; the first bytes of an existing file show its format.
A CorruptTableError names the URI of the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import fastavro

from lakeformat.errors import CorruptTableError
from lakeformat.files.avro.avro_container import (
    AvroBlocks,
    BlockLimitError,
    NotPlainError,
    read_blocks,
    read_records,
)
from lakeformat.files.avro.avro_records import record_schema
from lakeformat.files.codecs import nearest_codec
from lakeformat.paimon.metadata.columnar_file import (
    ORC_MAGIC,
    PARQUET_MAGIC,
    decode_rows,
    encode_rows,
)
from lakeformat.paimon.options import TableOptions

__all__ = [
    "AVRO",
    "RESTORE",
    "avro_codec",
    "check_version",
    "decode_avro_file",
    "decode_record_file",
    "encode_avro_file",
    "encode_record_file",
    "fault_of",
    "manifest_codec",
    "optional_field",
]

AVRO = "avro"
_CODECS = {"zstd": "zstandard"}
RESTORE = "restore the file from a backup or roll the table back to an earlier snapshot"
"""The advice for a damaged file of metadata records."""


def encode_record_file(
    schema: dict[str, Any], records: Iterable[dict[str, Any]], options: TableOptions
) -> bytes:
    """Return records of an Avro schema as the content of a file in the table's manifest format."""
    codec, file_format = manifest_codec(options), options.manifest_format
    if file_format != AVRO:
        return encode_rows(schema, records, file_format, codec)
    level = options.file_compression_zstd_level
    return encode_avro_file(schema, records, compression=codec, zstd_level=level)


def manifest_codec(options: TableOptions) -> str:
    """Return the compression of new manifests: the option ``manifest.compression``.

    If ``manifest.format`` lacks this compression, return the most similar one.
    """
    return nearest_codec(options.manifest_format, options.manifest_compression)


def decode_record_file(content: bytes, uri: str, *, version: int) -> list[dict[str, Any]]:
    """Return every record of a file in Avro, ORC or Parquet; its first bytes show the format.

    The option ``manifest.format`` is ignored, because it may have changed since the file was
    written. Raise CorruptTableError if the file is damaged or a record has another version.
    """
    if not content.startswith((PARQUET_MAGIC, ORC_MAGIC)):
        return decode_avro_file(content, uri, version=version)
    try:
        records = decode_rows(content)
    except ValueError as damage:
        raise CorruptTableError(
            f"{uri} ({len(content)} bytes) is not a readable ORC or Parquet file: {damage}; "
            f"{RESTORE}"
        ) from None
    for record in records:
        check_version(record, version, uri)
    return records


def optional_field(name: str, avro_type: Any) -> dict[str, Any]:
    """Return a nullable Avro field with the default null.

    So files of writers that do not know the field can be read.
    """
    return {"name": name, "type": ["null", avro_type], "default": None}


def avro_codec(compression: str) -> str:
    """Return Avro's name for a compression of the table options: ``zstandard`` for ``zstd``."""
    return _CODECS.get(compression, compression)


def encode_avro_file(
    schema: dict[str, Any],
    records: Iterable[dict[str, Any]],
    *,
    compression: str,
    zstd_level: int,
) -> bytes:
    """Return records as an Avro file; ``compression`` is a value of ``manifest.compression``."""
    codec = avro_codec(compression)
    level = zstd_level if codec == "zstandard" else None
    buffer = io.BytesIO()
    fastavro.writer(
        buffer, fastavro.parse_schema(schema), records, codec=codec, codec_compression_level=level
    )
    return buffer.getvalue()


def decode_avro_file(
    content: bytes, uri: str, *, version: int | None = None
) -> list[dict[str, Any]]:
    """Return every record of an Avro file, decoded by the schema in the file.

    Raise CorruptTableError if the file is damaged, or if it claims far more bytes or records than
    a file of its size can have. Also raise it if a record has another version; ``version=None``
    skips this check.
    """
    try:
        return list(_records(read_blocks(content), version, uri))
    except BlockLimitError:
        reason = "it claims far more bytes or records than a file of its size can have"
        raise _unreadable(content, uri, reason) from None
    except (NotPlainError, ValueError) as damage:
        raise _unreadable(content, uri, str(damage)) from damage


def _unreadable(content: bytes, uri: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{uri} ({len(content)} bytes) is not a readable Avro file: {reason}; {RESTORE}"
    )


def _records(blocks: AvroBlocks, version: int | None, uri: str) -> Iterator[dict[str, Any]]:
    schema = record_schema(blocks.schema)
    for record in read_records(
        blocks, lambda stream: fastavro.schemaless_reader(stream, schema, None)
    ):
        if version is not None:
            check_version(record, version, uri)
        yield record


def fault_of(reason: Exception) -> str:
    """Return what is wrong with a record, given the error of reading its fields."""
    return f"a record lacks the field {reason}" if isinstance(reason, KeyError) else str(reason)


def check_version(record: Mapping[str, Any], version: int, uri: str) -> None:
    """Raise CorruptTableError unless a record has ``version``: other versions would be misread."""
    found = record.get("_VERSION")
    if found == version:
        return
    if isinstance(found, int) and found > version:
        raise CorruptTableError(
            f"{uri} has format version {found}, but this library reads {version}: the file has a "
            "newer format; upgrade this library"
        )
    stated = "no format version" if found is None else f"format version {found}"
    raise CorruptTableError(f"{uri} has {stated}, but this library reads {version}; {RESTORE}")
