# SPDX-License-Identifier: Apache-2.0
"""Encodes manifests column by column; the bytes equal those of a record-by-record encoder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakeformat.files.avro.avro_packing import pack_records
from lakeformat.files.avro.pieces import (
    BytesPiece,
    Piece,
    encode_groups,
    list_pieces,
    number_pieces,
)
from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    Column,
    Mask,
    NumberColumn,
    Positions,
)
from lakeformat.paimon.metadata.manifest_columns.entries import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.schema import (
    COLUMN_PATHS,
    MANIFEST_SCHEMA,
    MANIFEST_SHAPE,
)
from lakeformat.paimon.metadata.manifest_columns.shape import FieldShape
from lakeformat.paimon.metadata.manifest_entry import FORMAT_VERSION, ManifestEntry
from lakeformat.paimon.metadata.record_file import avro_codec

__all__ = ["encode_manifest", "entry_record"]

_SCHEMA_JSON = json.dumps(MANIFEST_SCHEMA)
_COLUMN_OF = {path: name for name, path in COLUMN_PATHS.items()}


def encode_manifest(
    columns: ManifestColumns, *, compression: str, zstd_level: int, sync: bytes | None = None
) -> bytes:
    """Return the content of an Avro manifest with these entries.

    ``compression`` is a value of ``manifest.compression``; ``sync`` is the sync marker of 16 bytes,
    None for a random one.
    """
    records, ends = encode_records(columns)
    codec = avro_codec(compression)
    return pack_records(_SCHEMA_JSON, records, ends, codec=codec, zstd_level=zstd_level, sync=sync)


def entry_record(entry: ManifestEntry) -> dict[str, Any]:
    """Return the Avro record of an entry, by field name."""
    return {
        "_VERSION": FORMAT_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": entry.file.to_record(),
    }


def encode_records(columns: ManifestColumns) -> tuple[NDArray[np.uint8], Positions]:
    """Return the bytes of all records, one after the other, and the end position of each record."""
    return encode_groups(len(columns), lambda rows: _record_pieces(columns.take(rows)))


def _record_pieces(columns: ManifestColumns) -> Iterator[Piece]:
    yield from number_pieces(np.full(len(columns), FORMAT_VERSION, np.int64))
    for path, field in MANIFEST_SHAPE.items():
        if path != "_VERSION":
            yield from _field_pieces(getattr(columns, _COLUMN_OF[path]), field)


def _field_pieces(column: Column, field: FieldShape) -> Iterator[Piece]:
    """Yield the encoded parts of a field: the union branch if it is nullable, then the values."""
    present, null_branch = column.present, field.null_branch
    if null_branch is not None:
        known = np.ones(len(column), np.bool_) if present is None else present
        yield from number_pieces(np.where(known, 1 - null_branch, null_branch).astype(np.int64))
    if present is None or present.any():
        yield from _value_pieces(column, field, present)


def _value_pieces(column: Column, field: FieldShape, present: Mask | None) -> Iterator[Piece]:
    if isinstance(column, NumberColumn):
        yield from number_pieces(column.numbers, present)
    elif isinstance(column, BytesColumn):
        yield from number_pieces(column.sizes, present)
        if column.sizes.any():
            yield BytesPiece(column.data, column.starts, column.sizes)
    else:
        items, rows = column.items, column.item_rows
        yield from list_pieces(
            column.counts, present, lambda: _field_pieces(items.take(rows()), field.item)
        )
