# SPDX-License-Identifier: Apache-2.0
"""Reads manifest lists: the manifests of one snapshot, as a table with one row for each
manifest.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import CorruptTableError, UnsupportedError
from lakeformat.iceberg.file_places import FilePlaces
from lakeformat.iceberg.metadata.avro_records import decode_by_id, read_record_file
from lakeformat.iceberg.metadata.record_columns import column_of
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.tables.json_file import RESTORE

__all__ = ["MANIFEST_SCHEMA", "read_manifest_list"]

_SUMMARY = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        ("contains_nan", pa.bool_()),
        ("lower_bound", pa.binary()),
        ("upper_bound", pa.binary()),
    ]
)
MANIFEST_SCHEMA = pa.schema(
    [
        pa.field("manifest_path", pa.string(), nullable=False),
        ("manifest_length", pa.int64()),
        pa.field("partition_spec_id", pa.int32(), nullable=False),
        pa.field("content", pa.int32(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("min_sequence_number", pa.int64(), nullable=False),
        pa.field("added_snapshot_id", pa.int64(), nullable=False),
        ("added_files_count", pa.int32()),
        ("existing_files_count", pa.int32()),
        ("deleted_files_count", pa.int32()),
        ("added_rows_count", pa.int64()),
        ("existing_rows_count", pa.int64()),
        ("deleted_rows_count", pa.int64()),
        ("partitions", pa.list_(_SUMMARY)),
        ("key_metadata", pa.binary()),
        ("first_row_id", pa.int64()),
    ]
)
"""The columns of a manifest list, with the names of the specification.

``content`` is 0 for manifests of data files, and 1 for manifests of delete files. A count is null
if the writer did not store it.
"""
_IN_VERSION_1 = {"content": 0, "sequence_number": 0, "min_sequence_number": 0}
"""The values of columns that format version 1 does not have."""


def read_manifest_list(places: FilePlaces, snapshot: Snapshot) -> pa.Table:
    """Return the manifests of a snapshot, in the order of its manifest list.

    Raise ``CorruptTableError`` if the list is missing or damaged, and ``UnsupportedError`` if its
    manifests are encrypted.
    """
    if snapshot.manifest_list is None:
        return _of_paths(snapshot)
    uri = snapshot.manifest_list
    file = read_record_file(places.read(uri), uri)
    records = [each for some in decode_by_id(file) for each in some]
    table = pa.table(
        [
            column_of(records, field, uri, _IN_VERSION_1.get(field.name))
            for field in MANIFEST_SCHEMA
        ],
        schema=MANIFEST_SCHEMA,
    )
    if table.column("key_metadata").null_count < table.num_rows:
        raise UnsupportedError(
            f"{uri} names encrypted manifests, and this version reads no encrypted tables: use the "
            "engine that has the keys"
        )
    unknown = set(table.column("content").to_pylist()) - {0, 1}
    if unknown:
        raise CorruptTableError(
            f"{uri} is damaged: the content of a manifest is {min(unknown)}, but must be 0 or 1; "
            f"{RESTORE}"
        )
    _check(table, uri)
    return table


def _check(table: pa.Table, uri: str) -> None:
    """Raise ``CorruptTableError`` if a manifest is listed twice or a count of files is negative."""
    for kind in ("added", "existing", "deleted"):
        name = f"{kind}_files_count"
        if (least := pc.min(table.column(name)).as_py()) is not None and least < 0:
            raise CorruptTableError(
                f"{uri} is damaged: {name} of a manifest is {least}, but a count cannot be "
                f"negative; {RESTORE}"
            )
    paths = table.column("manifest_path")
    if len(paths.unique()) < len(paths):
        raise CorruptTableError(f"{uri} names a manifest more than once; {RESTORE}")


def _of_paths(snapshot: Snapshot) -> pa.Table:
    """Return the manifests of a version 1 snapshot without a manifest list; only their paths are
    known.
    """
    known: dict[str, Any] = {
        "partition_spec_id": 0,
        "added_snapshot_id": snapshot.snapshot_id,
        **_IN_VERSION_1,
    }
    rows = [{"manifest_path": path, **known} for path in snapshot.manifests]
    return pa.Table.from_pylist(rows, schema=MANIFEST_SCHEMA)
