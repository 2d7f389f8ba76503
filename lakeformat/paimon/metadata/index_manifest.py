# SPDX-License-Identifier: Apache-2.0
"""Index manifests: ``manifest/index-manifest-<uuid>-<n>``, each with all index files of a snapshot.

A commit that changes an index file writes a new index manifest, which lists the unchanged index
files again. The snapshot of any other commit names the index manifest of the snapshot before it.
``paimon/index/combination.py`` computes the new list of index files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.errors import CorruptTableError
from lakeformat.files.vector_record import DeletionVectorRange
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest import FileKind, read_manifest_bytes
from lakeformat.paimon.metadata.record_file import (
    decode_record_file,
    encode_record_file,
    fault_of,
    optional_field,
)
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import Storage

__all__ = [
    "DELETION_VECTORS",
    "HASH",
    "INDEX_ENTRY_FIELDS",
    "GlobalIndexMeta",
    "IndexManifestEntry",
    "index_entry_from_record",
    "index_entry_record",
    "read_index_manifest",
    "write_index_manifest",
]

FORMAT_VERSION = 1
"""The version of index manifests; a file with another version is refused.

New fields do not change the version.
"""

HASH = "HASH"
DELETION_VECTORS = "DELETION_VECTORS"


@dataclass(frozen=True, slots=True)
class GlobalIndexMeta:
    """The columns and row ids that a global index file covers.

    This library copies such files from snapshot to snapshot, but does not use them.
    """

    row_range_start: int
    row_range_end: int
    """The last row id, inclusive."""
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexManifestEntry:
    """One index file of one bucket."""

    partition: bytes
    """The partition as a framed binary row; a row without fields if the table is unpartitioned."""
    bucket: int
    index_type: str
    """``HASH``, ``DELETION_VECTORS`` or the type of a global index."""
    file_name: str
    file_size: int
    row_count: int
    """The number of hashes in a HASH file, or of vectors in a DELETION_VECTORS file."""
    ranges: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndexMeta | None = None
    kind: FileKind = FileKind.ADD
    """Always ADD, because an index manifest lists only existing files; a DELETE is damage."""


def write_index_manifest(
    storage: Storage,
    layout: TableLayout,
    name: str,
    entries: Iterable[IndexManifestEntry],
    options: TableOptions,
) -> int:
    """Write all index files of a snapshot to ``manifest/<name>``; return the file's size in bytes.

    No file of this name may exist yet.
    """
    content = encode_record_file(_SCHEMA, map(_state_record, entries), options)
    with storage.open_output(layout.manifest(name)) as stream:
        stream.write(content)
    return len(content)


def read_index_manifest(
    storage: Storage, layout: TableLayout, name: str
) -> list[IndexManifestEntry]:
    """Return the entries of the index manifest ``name``, in the order in which they were written.

    Raise CorruptTableError if the file is missing or damaged.
    """
    content, uri = read_manifest_bytes(storage, layout, name)
    records = decode_record_file(content, uri, version=FORMAT_VERSION)
    try:
        return [index_entry_from_record(record) for record in records]
    except (KeyError, TypeError, ValueError) as reason:
        raise CorruptTableError(
            f"{uri} is not an index manifest: {fault_of(reason)}; "
            "restore the file from a backup or roll the table back to an earlier snapshot"
        ) from None


def _state_record(entry: IndexManifestEntry) -> dict[str, Any]:
    assert entry.kind is FileKind.ADD, "an index manifest must list only ADD entries"
    return index_entry_record(entry)


def index_entry_record(entry: IndexManifestEntry) -> dict[str, Any]:
    """Return the Avro record of an entry, by field name."""
    plain = {avro: getattr(entry, name) for avro, (name, _) in _PLAIN.items()}
    ranges = entry.ranges
    meta = entry.global_index
    return {
        "_VERSION": FORMAT_VERSION,
        "_KIND": int(entry.kind),
        **plain,
        "_DELETIONS_VECTORS_RANGES": None if ranges is None else [*map(_range_record, ranges)],
        "_GLOBAL_INDEX": None if meta is None else _global_index_record(meta),
    }


def _range_record(found: DeletionVectorRange) -> dict[str, Any]:
    return {avro: getattr(found, name) for avro, (name, _) in _RANGE.items()}


def _global_index_record(meta: GlobalIndexMeta) -> dict[str, Any]:
    extra = meta.extra_field_ids
    plain = {avro: getattr(meta, name) for avro, (name, _) in _GLOBAL_INDEX.items()}
    return {**plain, "_EXTRA_FIELD_IDS": None if extra is None else list(extra)}


def index_entry_from_record(record: Mapping[str, Any]) -> IndexManifestEntry:
    """Return the entry of an Avro record.

    Raise KeyError, TypeError or ValueError for a damaged record.
    """
    ranges = record.get("_DELETIONS_VECTORS_RANGES")
    meta = record.get("_GLOBAL_INDEX")
    return IndexManifestEntry(
        **_members(record, _PLAIN),
        # Java declares the items nullable, pypaimon does not; neither ever writes a null item.
        ranges=None
        if ranges is None
        else tuple(DeletionVectorRange(**_members(item, _RANGE)) for item in ranges),
        global_index=None if meta is None else _global_index(meta),
        kind=FileKind(record["_KIND"]),
    )


def _global_index(record: Mapping[str, Any]) -> GlobalIndexMeta:
    extra = record.get("_EXTRA_FIELD_IDS")
    ids = None if extra is None else tuple(_typed(field_id, int) for field_id in extra)
    return GlobalIndexMeta(**_members(record, _GLOBAL_INDEX), extra_field_ids=ids)


def _members(record: Mapping[str, Any], members: Mapping[str, tuple[str, type]]) -> dict[str, Any]:
    """Return the values of a record by attribute name.

    Raise KeyError if a field is missing, and TypeError if a value has a wrong type.
    """
    return {
        name: None
        if avro in _NULLABLE and record.get(avro) is None
        else _typed(record[avro], expected)
        for avro, (name, expected) in members.items()
    }


def _typed(value: Any, expected: type) -> Any:
    if type(value) is not expected:
        raise TypeError(f"{value!r} is not of type {expected.__name__}")
    return value


# For each field of the file: the attribute, and the type of the attribute.
_PLAIN: dict[str, tuple[str, type]] = {
    "_PARTITION": ("partition", bytes),
    "_BUCKET": ("bucket", int),
    "_INDEX_TYPE": ("index_type", str),
    "_FILE_NAME": ("file_name", str),
    "_FILE_SIZE": ("file_size", int),
    "_ROW_COUNT": ("row_count", int),
    "_EXTERNAL_PATH": ("external_path", str),
}
_RANGE: dict[str, tuple[str, type]] = {
    "f0": ("data_file_name", str),
    "f1": ("offset", int),
    "f2": ("length", int),
    "_CARDINALITY": ("cardinality", int),
}
_GLOBAL_INDEX: dict[str, tuple[str, type]] = {
    "_ROW_RANGE_START": ("row_range_start", int),
    "_ROW_RANGE_END": ("row_range_end", int),
    "_INDEX_FIELD_ID": ("index_field_id", int),
    "_INDEX_META": ("index_meta", bytes),
    "_SOURCE_META": ("source_meta", bytes),
}
# The value is null, or missing in the files of older writers.
_NULLABLE = {"_EXTERNAL_PATH", "_CARDINALITY", "_INDEX_META", "_SOURCE_META"}


_RECORD = "org.apache.paimon.avro.generated.record"
_RANGE_SCHEMA = {
    "type": "record",
    "name": f"{_RECORD}__DELETIONS_VECTORS_RANGES",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        optional_field("_CARDINALITY", "long"),
    ],
}
_GLOBAL_INDEX_SCHEMA = {
    "type": "record",
    "name": f"{_RECORD}__GLOBAL_INDEX",
    "fields": [
        {"name": "_ROW_RANGE_START", "type": "long"},
        {"name": "_ROW_RANGE_END", "type": "long"},
        {"name": "_INDEX_FIELD_ID", "type": "int"},
        optional_field("_EXTRA_FIELD_IDS", {"type": "array", "items": "int"}),
        optional_field("_INDEX_META", "bytes"),
        optional_field("_SOURCE_META", "bytes"),
    ],
}
INDEX_ENTRY_FIELDS: list[dict[str, Any]] = [
    {"name": "_VERSION", "type": "int"},
    {"name": "_KIND", "type": "int"},
    {"name": "_PARTITION", "type": "bytes"},
    {"name": "_BUCKET", "type": "int"},
    {"name": "_INDEX_TYPE", "type": "string"},
    {"name": "_FILE_NAME", "type": "string"},
    {"name": "_FILE_SIZE", "type": "long"},
    {"name": "_ROW_COUNT", "type": "long"},
    optional_field(
        "_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _RANGE_SCHEMA]}
    ),
    optional_field("_EXTERNAL_PATH", "string"),
    optional_field("_GLOBAL_INDEX", _GLOBAL_INDEX_SCHEMA),
]
_SCHEMA: dict[str, Any] = {"type": "record", "name": _RECORD, "fields": INDEX_ENTRY_FIELDS}
