# SPDX-License-Identifier: Apache-2.0
"""Manifests and other metadata records in ORC or Parquet files, as ``manifest.format``
configures.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lakeformat.files.avro.avro_container import most_records, most_unpacked

__all__ = ["ORC_MAGIC", "PARQUET_MAGIC", "decode_rows", "encode_rows"]

PARQUET_MAGIC, ORC_MAGIC = b"PAR1", b"ORC"
PARQUET = "parquet"
_NARROW = ("_KIND", "_FILE_SOURCE")
"""Members that are TINYINT in ORC and Parquet; Avro has no type this small."""
_ARROW = {
    "int": pa.int32(),
    "long": pa.int64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}


def encode_rows(
    schema: dict[str, Any], records: Iterable[dict[str, Any]], file_format: str, codec: str
) -> bytes:
    """Return records of an Avro schema as the content of an ORC or Parquet file."""
    rows = pa.Table.from_pylist(list(records), _arrow_schema(schema))
    buffer = io.BytesIO()
    if file_format == PARQUET:
        import pyarrow.parquet as pq  # only for metadata that is not Avro

        pq.write_table(rows, buffer, compression=codec, store_schema=False)
    else:
        import pyarrow.orc as orc

        orc.write_table(rows, buffer, compression=codec)
    return buffer.getvalue()


def decode_rows(content: bytes) -> list[dict[str, Any]]:
    """Return every record of an ORC or Parquet file.

    Raise ``ValueError`` if the file is damaged, or if it claims more rows or bytes than a file
    of its size can have.
    """
    source = pa.BufferReader(content)
    try:
        rows = _read(source, is_parquet=content.startswith(PARQUET_MAGIC), size=len(content))
        rows = rows.cast(pa.schema(map(_in_millis, rows.schema)), safe=False)
        records: list[dict[str, Any]] = rows.to_pylist()
    except (pa.ArrowException, OSError) as reason:
        raise ValueError(str(reason)) from None
    return records


def _read(source: pa.NativeFile, *, is_parquet: bool, size: int) -> pa.Table:
    most_rows = most_records(size)
    if is_parquet:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(source)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        count = file.metadata.num_rows
        if sum(group.total_byte_size for group in groups) > most_unpacked(size):
            count = most_rows + 1
    else:
        import pyarrow.orc as orc

        file = orc.ORCFile(source)
        count = file.nrows
    if count > most_rows:
        raise ValueError("it claims far more bytes or records than a file of its size can have")
    return file.read(use_threads=False) if is_parquet else file.read()


def _arrow_schema(schema: dict[str, Any]) -> pa.Schema:
    return pa.schema([_arrow_field(field) for field in schema["fields"]])


def _arrow_field(field: dict[str, Any]) -> pa.Field:
    avro = field["type"]
    nullable = isinstance(avro, list)
    kind = pa.int8() if field["name"] in _NARROW else _arrow_type(avro[-1] if nullable else avro)
    return pa.field(field["name"], kind, nullable)


def _arrow_type(avro: Any) -> pa.DataType:
    if isinstance(avro, str):
        return _ARROW[avro]
    if avro["type"] == "record":
        return pa.struct([_arrow_field(field) for field in avro["fields"]])
    if avro["type"] == "array":
        return pa.list_(_arrow_field({"name": "element", "type": avro["items"]}))
    return pa.timestamp("ms")


def _in_millis(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_timestamp(kind):
        return field.with_type(pa.timestamp("ms"))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_in_millis(each) for each in kind]))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_in_millis(kind.value_field)))
    return field
