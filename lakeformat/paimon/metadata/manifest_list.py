# SPDX-License-Identifier: Apache-2.0
"""Manifest lists: ``manifest/manifest-list-<uuid>-<n>``, each with some manifests of one
snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.manifest import (
    FORMAT_VERSION,
    ManifestEntry,
    read_manifest_bytes,
)
from lakeformat.paimon.metadata.manifest_columns import ManifestColumns, columns_of
from lakeformat.paimon.metadata.manifest_meta import ManifestMeta
from lakeformat.paimon.metadata.record_file import (
    decode_record_file,
    encode_record_file,
    fault_of,
    optional_field,
)
from lakeformat.paimon.metadata.referrer import referred_to_by
from lakeformat.paimon.metadata.simple_stats import (
    SIMPLE_STATS_FIELDS,
    SimpleStats,
    partition_stats,
)
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import Storage
from lakeformat.types.types import DataType

__all__ = [
    "ListKind",
    "ManifestMeta",
    "manifests_of",
    "read_manifest_list",
    "summarise",
    "summarise_columns",
    "write_manifest_list",
]


class ListKind(Enum):
    """The kinds of manifest lists of a snapshot.

    Each value names two attributes of Snapshot: the file name of the list, and its size in bytes.
    """

    BASE = ("base_manifest_list", "base_manifest_list_size")
    """The manifests that the snapshot keeps from earlier commits."""
    DELTA = ("delta_manifest_list", "delta_manifest_list_size")
    """The manifests of the data files that the commit added or deleted."""
    CHANGELOG = ("changelog_manifest_list", "changelog_manifest_list_size")
    """The manifests of the commit's changelog files.

    Without such files, both attributes of Snapshot are None.
    """


def summarise(
    file_name: str,
    file_size: int,
    entries: Sequence[ManifestEntry],
    partition_types: Sequence[DataType] = (),
) -> ManifestMeta:
    """Return the manifest-list entry for a manifest that was written with these entries."""
    return summarise_columns(file_name, file_size, columns_of(entries), partition_types)


def summarise_columns(
    file_name: str,
    file_size: int,
    columns: ManifestColumns,
    partition_types: Sequence[DataType] = (),
) -> ManifestMeta:
    """Return the manifest-list entry for a manifest that was written with these ``columns``."""
    assert len(columns), "a manifest must have at least one entry"
    deleted = int(columns.is_delete.sum())
    min_row_id, max_row_id = _row_ids(columns)
    return ManifestMeta(
        file_name=file_name,
        file_size=file_size,
        num_added_files=len(columns) - deleted,
        num_deleted_files=deleted,
        schema_id=int(columns.schema_id.numbers.max()),
        partition_stats=partition_stats(columns.partition.to_arrow(), partition_types),
        min_bucket=int(columns.bucket.numbers.min()),
        max_bucket=int(columns.bucket.numbers.max()),
        min_level=int(columns.level.numbers.min()),
        max_level=int(columns.level.numbers.max()),
        min_row_id=min_row_id,
        max_row_id=max_row_id,
    )


def _row_ids(columns: ManifestColumns) -> tuple[int | None, int | None]:
    """Return the first and the last row id; (None, None) if one of the files has no row ids."""
    first = columns.first_row_id
    if first.present is not None:
        return None, None
    last = first.numbers + columns.row_count.numbers - 1
    return int(first.numbers.min()), int(last.max())


def write_manifest_list(
    storage: Storage,
    layout: TableLayout,
    name: str,
    manifests: Iterable[ManifestMeta],
    options: TableOptions,
) -> int:
    """Write a manifest list, which may be empty, to the new file ``manifest/<name>``.

    Return the size of the file in bytes.
    """
    content = encode_record_file(_SCHEMA, map(_to_record, manifests), options)
    with storage.open_output(layout.manifest(name)) as stream:
        stream.write(content)
    return len(content)


def manifests_of(
    storage: Storage, layout: TableLayout, snapshot: Snapshot, *which: ListKind
) -> list[ManifestMeta]:
    """Return the manifests in the given lists of a snapshot; without ``which``, in BASE and DELTA.

    Raise CorruptTableError if a list is missing or damaged, or has another size than the snapshot
    states. Only the size shows that a list was truncated between two Avro blocks.
    """
    found = []
    for kind in which or (ListKind.BASE, ListKind.DELTA):
        name, size = (getattr(snapshot, member) for member in kind.value)
        if name is not None:
            source = f"snapshot {snapshot.id} of {storage.uri(layout.root)}"
            with referred_to_by(source):
                found += _read(storage, layout, name, size, f" of snapshot {snapshot.id}")
    return found


def read_manifest_list(
    storage: Storage, layout: TableLayout, name: str, *, size: int | None = None
) -> list[ManifestMeta]:
    """Return the entries of a manifest list, in the order of the file.

    Raise CorruptTableError if the list is missing or damaged, or does not have ``size`` bytes;
    ``size=None`` skips this check.
    """
    return _read(storage, layout, name, size)


def _read(
    storage: Storage, layout: TableLayout, name: str, size: int | None, whose: str = ""
) -> list[ManifestMeta]:
    """Return the entries of a manifest list; raise CorruptTableError if the list is missing or
    damaged.

    Each entry keeps the URI of the list, for later errors about its manifest. ``whose`` is appended
    to the URI: a text such as " of snapshot 5", or "".
    """
    content, uri = read_manifest_bytes(storage, layout, name, size=size)
    records = decode_record_file(content, uri, version=FORMAT_VERSION)
    try:
        return [_from_record(record, f"{uri}{whose}") for record in records]
    except (KeyError, TypeError) as reason:
        raise CorruptTableError(
            f"{uri} is not a manifest list: {fault_of(reason)}; "
            "restore the file from a backup or roll the table back to an earlier snapshot"
        ) from None


_PLAIN = {
    "_FILE_NAME": "file_name",
    "_FILE_SIZE": "file_size",
    "_NUM_ADDED_FILES": "num_added_files",
    "_NUM_DELETED_FILES": "num_deleted_files",
    "_SCHEMA_ID": "schema_id",
    "_MIN_BUCKET": "min_bucket",
    "_MAX_BUCKET": "max_bucket",
    "_MIN_LEVEL": "min_level",
    "_MAX_LEVEL": "max_level",
    "_MIN_ROW_ID": "min_row_id",
    "_MAX_ROW_ID": "max_row_id",
}


def _to_record(manifest: ManifestMeta) -> dict[str, Any]:
    plain = {avro: getattr(manifest, name) for avro, name in _PLAIN.items()}
    stats = manifest.partition_stats.to_record()
    return {"_VERSION": FORMAT_VERSION, "_PARTITION_STATS": stats, **plain}


def _from_record(record: Mapping[str, Any], uri: str) -> ManifestMeta:
    known = {name: record[avro] for avro, name in _PLAIN.items() if avro in record}
    return ManifestMeta(
        **known,
        partition_stats=SimpleStats.from_record(record["_PARTITION_STATS"]),
        named_by=uri,
    )


_STATS = {"type": "record", "name": "record__PARTITION_STATS", "fields": SIMPLE_STATS_FIELDS}
_OPTIONAL_NUMBERS = {
    "_MIN_BUCKET": "int",
    "_MAX_BUCKET": "int",
    "_MIN_LEVEL": "int",
    "_MAX_LEVEL": "int",
    "_MIN_ROW_ID": "long",
    "_MAX_ROW_ID": "long",
}
_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "org.apache.paimon.avro.generated.record",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_NUM_ADDED_FILES", "type": "long"},
        {"name": "_NUM_DELETED_FILES", "type": "long"},
        {"name": "_PARTITION_STATS", "type": _STATS},
        {"name": "_SCHEMA_ID", "type": "long"},
        *(optional_field(name, avro_type) for name, avro_type in _OPTIONAL_NUMBERS.items()),
    ],
}
