# SPDX-License-Identifier: Apache-2.0
"""Reads manifests of any writer into columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from lakeformat.errors import CorruptTableError
from lakeformat.files.avro.avro_container import (
    AvroBlocks,
    BlockLimitError,
    NotPlainError,
    join_blocks,
    read_blocks,
)
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest_columns.columns import BytesColumn, Column, ListColumn
from lakeformat.paimon.metadata.manifest_columns.decode import decode_columns
from lakeformat.paimon.metadata.manifest_columns.entries import (
    ManifestColumns,
    columns_of,
    from_decoded,
)
from lakeformat.paimon.metadata.manifest_columns.schema import COLUMN_PATHS, MANIFEST_SHAPE
from lakeformat.paimon.metadata.manifest_columns.shape import FieldShape, parse_shape
from lakeformat.paimon.metadata.manifest_entry import FORMAT_VERSION, FileKind, ManifestEntry
from lakeformat.paimon.metadata.record_file import decode_record_file, fault_of

__all__ = [
    "OpenManifest",
    "decode_manifest",
    "decode_manifest_by_record",
    "join_manifests",
    "open_manifest",
]

# The times from year 1 to 9999, which a DataFileMeta can hold.
_FIRST_MILLI, _LAST_MILLI = -62_135_596_800_000, 253_402_300_799_999

# A file without these fields is not a manifest. Later releases added the other fields.
_ALWAYS_THERE = [*COLUMN_PATHS.values()][: [*COLUMN_PATHS].index("extra_files") + 1]


def decode_manifest(content: bytes, uri: str) -> ManifestColumns:
    """Return the entries of a manifest, in the order in which they were written.

    Raise CorruptTableError if the manifest is damaged.
    """
    return join_manifests([open_manifest(content, uri)])[0]


@dataclass(frozen=True, slots=True)
class OpenManifest:
    """A manifest with its decompressed Avro blocks.

    ``blocks`` is None if the column decoder cannot read the manifest.
    """

    content: bytes
    uri: str
    blocks: AvroBlocks | None


def open_manifest(content: bytes, uri: str) -> OpenManifest:
    """Return the manifest with its blocks decompressed.

    Python's global lock is released, so that threads run in parallel. Raise CorruptTableError if
    the manifest claims far more bytes or records than a manifest of its size can have.
    """
    try:
        return OpenManifest(content, uri, read_blocks(content))
    except BlockLimitError:
        raise CorruptTableError(
            f"{uri} ({len(content)} bytes) claims far more bytes or records than a manifest of its "
            "size can have; restore the file from a backup or roll the table back to an earlier "
            "snapshot"
        ) from None
    except NotPlainError:
        return OpenManifest(content, uri, None)


def join_manifests(manifests: Sequence[OpenManifest]) -> tuple[ManifestColumns, list[int]]:
    """Return the entries of many manifests, and the number of entries in each manifest.

    Raise CorruptTableError if a manifest is damaged.
    """
    parts: list[ManifestColumns] = []
    lengths: list[int] = []
    for _, run in groupby(manifests, lambda each: each.blocks and each.blocks.schema):
        together = list(run)
        try:
            parts.append(_decode_plain([each.blocks for each in together]))
            lengths += [int(each.blocks.counts.sum()) for each in together if each.blocks]
        except NotPlainError:
            alone = [_decode_one(each) for each in together]
            parts += alone
            lengths += map(len, alone)
    return ManifestColumns.concat(parts), lengths


def _decode_one(manifest: OpenManifest) -> ManifestColumns:
    try:
        return _decode_plain([manifest.blocks])
    except NotPlainError:
        # Damaged, or written by an unknown writer: the general decoder decides.
        return columns_of(decode_manifest_by_record(manifest.content, manifest.uri))


def _decode_plain(manifests: Sequence[AvroBlocks | None]) -> ManifestColumns:
    """Decode entries as columns; raise ``NotPlainError`` if they need the general decoder."""
    plain = [blocks for blocks in manifests if blocks is not None]
    if not plain or len(plain) < len(manifests):
        raise NotPlainError("at least one of these manifests needs the general decoder")
    blocks = join_blocks(plain)
    shape = parse_shape(blocks.schema)
    _check_fields({field.path: field for field in shape})
    columns = decode_columns(blocks, shape)
    found = from_decoded({field.path: column for field, column in zip(shape, columns, strict=True)})
    _check_values(found)
    return found


def decode_manifest_by_record(content: bytes, uri: str) -> list[ManifestEntry]:
    """Return the entries of a manifest in Avro, ORC or Parquet, decoded one by one.

    Raise CorruptTableError if the manifest is damaged.
    """
    records = decode_record_file(content, uri, version=FORMAT_VERSION)
    try:
        return [_from_record(record) for record in records]
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise CorruptTableError(
            f"{uri} is not a manifest: {fault_of(reason)}; "
            "restore the file from a backup or roll the table back to an earlier snapshot"
        ) from None


def _from_record(record: Mapping[str, Any]) -> ManifestEntry:
    return ManifestEntry(
        FileKind(record["_KIND"]),
        record["_PARTITION"],
        record["_BUCKET"],
        record["_TOTAL_BUCKETS"],
        DataFileMeta.from_record(record["_FILE"]),
    )


def _check_fields(found: Mapping[str, FieldShape]) -> None:
    """Raise NotPlainError if the schema of the file does not fit that of manifests.

    The file may have unknown fields, and may lack fields that later releases added. Each known
    field must have the type that it has in manifests. A field that is never null in manifests must
    not be nullable.
    """
    for path, ours in MANIFEST_SHAPE.items():
        theirs = found.get(path)
        if theirs is None:
            if path in _ALWAYS_THERE:
                raise NotPlainError(f"its schema lacks the field {path}")
        elif theirs.contents != ours.contents:
            raise NotPlainError(f"its field {path} has another type than in a manifest")
        elif ours.null_branch is None and theirs.null_branch is not None:
            raise NotPlainError(f"its field {path} is nullable, which no manifest allows")


def _check_values(columns: ManifestColumns) -> None:
    for name, path in COLUMN_PATHS.items():
        if MANIFEST_SHAPE[path].kind == "string" and not _is_text(getattr(columns, name)):
            raise NotPlainError(f"its field {path} is not UTF-8")
    times = columns.creation_time.numbers
    if (times < _FIRST_MILLI).any() or (times > _LAST_MILLI).any():
        raise NotPlainError("the creation time of a file is outside of the years 1 to 9999")


def _is_text(column: Column) -> bool:
    if isinstance(column, ListColumn):
        column = column.items
    assert isinstance(column, BytesColumn)
    return len(column) == 0 or not np.any(column.sizes) or column.is_text()
