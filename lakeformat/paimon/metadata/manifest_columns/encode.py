# SPDX-License-Identifier: Apache-2.0
"""Encodes manifests column by column; the bytes equal those of a record-by-record encoder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakeformat.files.avro.avro_packing import pack_records
from lakeformat.paimon.metadata.manifest_columns.columns import (
    BytesColumn,
    Column,
    ListColumn,
    Mask,
    NumberColumn,
    Positions,
)
from lakeformat.paimon.metadata.manifest_columns.entries import ManifestColumns
from lakeformat.paimon.metadata.manifest_columns.pieces import (
    BytesPiece,
    Piece,
    WordPiece,
    join_words,
    number_piece,
    write_pieces,
)
from lakeformat.paimon.metadata.manifest_columns.schema import (
    COLUMN_PATHS,
    MANIFEST_SCHEMA,
    MANIFEST_SHAPE,
)
from lakeformat.paimon.metadata.manifest_columns.shape import FieldShape
from lakeformat.paimon.metadata.manifest_entry import FORMAT_VERSION, ManifestEntry
from lakeformat.paimon.metadata.record_file import avro_codec

__all__ = ["encode_manifest", "entry_record"]

_GROUP_ROWS = 4096
"""Number of records written together: long columns, but small enough for the CPU cache."""

_SCHEMA_JSON = json.dumps(MANIFEST_SCHEMA)
_COLUMN_OF = {path: name for name, path in COLUMN_PATHS.items()}


def encode_manifest(
    columns: ManifestColumns, *, compression: str, zstd_level: int, sync: bytes | None = None
) -> bytes:
    """Return the content of a manifest; ``compression`` is a value of the table options."""
    records, ends = encode_records(columns)
    codec = avro_codec(compression)
    return pack_records(_SCHEMA_JSON, records, ends, codec=codec, zstd_level=zstd_level, sync=sync)


def entry_record(entry: ManifestEntry) -> dict[str, Any]:
    """Return one entry as an Avro record."""
    return {
        "_VERSION": FORMAT_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": entry.file.to_record(),
    }


def encode_records(columns: ManifestColumns) -> tuple[NDArray[np.uint8], Positions]:
    """Return the bytes of all records, one after the other, and where each ends."""
    parts, ends, size = [], [], 0
    for first in range(0, len(columns), _GROUP_ROWS):
        group = columns.take(slice(first, first + _GROUP_ROWS))
        pieces = join_words(list(_record_pieces(group)))
        data, group_ends = write_pieces(pieces, len(group))
        parts.append(data[: group_ends[-1]])
        ends.append(group_ends + size)
        size += int(group_ends[-1])
    if not parts:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64)
    return np.concatenate(parts), np.concatenate(ends)


def _record_pieces(columns: ManifestColumns) -> Iterator[Piece]:
    yield number_piece(np.full(len(columns), FORMAT_VERSION, np.int64))
    for path, field in MANIFEST_SHAPE.items():
        if path != "_VERSION":
            yield from _field_pieces(getattr(columns, _COLUMN_OF[path]), field)


def _field_pieces(column: Column, field: FieldShape) -> Iterator[Piece]:
    """Yield the values of a field; a nullable field has its union branch first."""
    present, null_branch = column.present, field.null_branch
    if null_branch is not None:
        known = np.ones(len(column), np.bool_) if present is None else present
        yield number_piece(np.where(known, 1 - null_branch, null_branch).astype(np.int64))
    if present is None or present.any():
        yield from _value_pieces(column, field, present)


def _value_pieces(column: Column, field: FieldShape, present: Mask | None) -> Iterator[Piece]:
    if isinstance(column, NumberColumn):
        yield number_piece(column.numbers, present)
    elif isinstance(column, BytesColumn):
        yield number_piece(column.sizes, present)
        if column.sizes.any():
            yield BytesPiece(column.data, column.starts, column.sizes)
    else:
        yield from _list_pieces(column, field, present)


def _list_pieces(column: ListColumn, field: FieldShape, present: Mask | None) -> Iterator[Piece]:
    """Yield each list as one block of items and a closing zero; an empty list as the zero alone."""
    yield number_piece(column.counts, present)
    if not column.counts.any():
        return
    items = column.items.take(column.item_rows())
    pieces = join_words(list(_field_pieces(items, field.item)))
    data, ends = write_pieces(pieces, len(items))
    bounds = np.concatenate(([0], ends))
    last = np.cumsum(column.counts)
    starts = bounds[last - column.counts]
    yield BytesPiece(data, starts, bounds[last] - starts)
    filled = column.counts > 0
    zeros = np.zeros(len(column), np.uint64)
    yield WordPiece(zeros, 1 if filled.all() else filled.astype(np.int64), 1)
