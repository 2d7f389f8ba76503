"""Files of metadata records in the format the table keeps its manifests in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lakeformat.errors import CorruptTableError
from lakeformat.files.codecs import nearest_codec
from lakeformat.paimon.metadata.avro_file import check_version, decode_avro_file, encode_avro_file
from lakeformat.paimon.metadata.columnar_file import (
    ORC_MAGIC,
    PARQUET_MAGIC,
    decode_rows,
    encode_rows,
)
from lakeformat.paimon.options import TableOptions

__all__ = ["AVRO", "decode_record_file", "encode_record_file", "manifest_codec"]

AVRO = "avro"


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
    """Return what the manifest format calls the table's compression, or the one most like it."""
    return nearest_codec(options.manifest_format, options.manifest_compression)


def decode_record_file(content: bytes, uri: str, *, version: int) -> list[dict[str, Any]]:
    """Return every record of a file, whichever format its first bytes name.

    The option of the table is not asked: it may have changed since the file was written.
    """
    if not content.startswith((PARQUET_MAGIC, ORC_MAGIC)):
        return decode_avro_file(content, uri, version=version)
    try:
        records = decode_rows(content)
    except ValueError as damage:
        raise CorruptTableError(
            f"{uri} ({len(content)} bytes) is not a readable ORC or Parquet file: {damage}; "
            "restore the file from a backup or roll the table back to an earlier snapshot"
        ) from None
    for record in records:
        check_version(record, version, uri)
    return records
