# SPDX-License-Identifier: Apache-2.0
"""Decodes records of manifests and manifest lists, with fields found by id.

Writers name fields differently: older writers call field 504 ``added_data_files_count``. So each
field gets the name that the specification gives to its id. Values keep their physical type: a date
is a number of days, and a decimal is bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
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

__all__ = ["RecordFile", "decode_by_id", "has_int", "partition_key", "read_record_file"]

_PARTITION = "partition"
_AT_ONCE = 8192
"""The largest number of records that are Python objects at the same time."""

_LIST_NAMES = {
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    517: "content",
    515: "sequence_number",
    516: "min_sequence_number",
    503: "added_snapshot_id",
    504: "added_files_count",
    505: "existing_files_count",
    506: "deleted_files_count",
    512: "added_rows_count",
    513: "existing_rows_count",
    514: "deleted_rows_count",
    507: "partitions",
    509: "contains_null",
    518: "contains_nan",
    510: "lower_bound",
    511: "upper_bound",
    519: "key_metadata",
    520: "first_row_id",
}
_MANIFEST_NAMES = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
    2: "data_file",
    134: "content",
    100: "file_path",
    101: "file_format",
    102: "partition",
    103: "record_count",
    104: "file_size_in_bytes",
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}
_NAMES = _LIST_NAMES | _MANIFEST_NAMES


@dataclass(frozen=True, slots=True)
class RecordFile:
    """The content of a manifest or manifest list, decompressed."""

    uri: str
    size: int
    blocks: AvroBlocks

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the records, with field names that follow from the field ids.

        Reading it raises ``ValueError`` if the file has no valid schema.
        """
        return record_schema(_schema_by_id(self.blocks.schema))


def read_record_file(content: bytes, uri: str) -> RecordFile:
    """Decompress a manifest or manifest list.

    Raise ``CorruptTableError``, which names ``uri``, if the content is not a readable Avro file.
    """
    with _named(uri, len(content)):
        return RecordFile(uri, len(content), read_blocks(content))


def decode_by_id(file: RecordFile) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of a file in lists; a file without records yields one empty list.

    Raise ``CorruptTableError``, which names the file, for records that are not readable.
    """
    with _named(file.uri, file.size):
        schema = file.schema
        records = read_records(
            file.blocks, lambda stream: fastavro.schemaless_reader(stream, schema, None)
        )
        yield list(islice(records, _AT_ONCE))
        while some := list(islice(records, _AT_ONCE)):
            yield some


@contextmanager
def _named(uri: str, size: int) -> Iterator[None]:
    try:
        yield
        return
    except BlockLimitError:
        reason = "it claims far more bytes or records than a file of its size can have"
    except (NotPlainError, ValueError, RecursionError) as damage:
        reason = str(damage)
    raise CorruptTableError(
        f"{uri} ({size} bytes) is not a readable Avro file: {reason}; restore the file "
        "from a backup, or read another snapshot"
    )


def partition_key(field_id: int) -> str:
    """Return the name of a partition field in the record ``partition``."""
    return f"_{field_id}"


def has_int(manifest: RecordFile, field_id: int) -> bool:
    """Return True if a partition field of a manifest has the Avro type ``int``; False for
    another type, or if the schema is damaged.
    """
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        kind: Any = manifest.schema
        for name in ("data_file", _PARTITION, partition_key(field_id)):
            kind = {each["name"]: each["type"] for each in kind["fields"]}[name]
        kinds = kind if isinstance(kind, list) else [kind]
        return any(each in ("int", {"type": "int"}) for each in kinds)
    return False


@lru_cache(maxsize=64)
def _schema_by_id(text: bytes) -> bytes:
    return json.dumps(_renamed(json.loads(text), in_partition=False)).encode()


def _renamed(schema: Any, *, in_partition: bool) -> Any:
    """Return an Avro schema with the field names that the Iceberg specification gives to field ids.

    Logical types are left out. With ``in_partition`` the fields are partition fields, whose names
    follow from their ids.
    """
    if isinstance(schema, list):
        return [_renamed(each, in_partition=in_partition) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key != "logicalType"}
    for inner in ("type", "items", "values"):
        if isinstance(plain.get(inner), dict | list):
            plain[inner] = _renamed(plain[inner], in_partition=in_partition)
    if isinstance(plain.get("fields"), list):
        plain["fields"] = [_renamed_field(each, in_partition) for each in plain["fields"]]
    return plain


def _renamed_field(field: Any, in_partition: bool) -> Any:
    if not isinstance(field, dict):
        return field
    field_id, name = field.get("field-id"), field.get("name")
    if isinstance(field_id, int):
        name = partition_key(field_id) if in_partition else _NAMES.get(field_id, name)
    of_partition = name == _PARTITION
    inner = _renamed(field.get("type"), in_partition=in_partition or of_partition)
    return {"name": name, "type": inner}
