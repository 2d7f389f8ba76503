# SPDX-License-Identifier: Apache-2.0
"""Writes manifests and manifest lists from Arrow tables.

The tables have the columns of ``manifest.entry_schema`` and ``manifest_list.MANIFEST_SCHEMA``. For
an entry with a null sequence number, snapshot id or first row id, readers take the number from the
manifest list. So only entries of added files may have a null sequence number or snapshot id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.files.avro.arrow_records import encode_records
from lakeformat.files.avro.avro_packing import pack_records
from lakeformat.iceberg.metadata.avro_schemas import BLOCK_SIZE, list_schema, manifest_schema
from lakeformat.iceberg.metadata.manifest import ADDED, DELETED, EXISTING
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA
from lakeformat.iceberg.metadata.partition_summary import partition_summaries
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import PartitionSpec, spec_to_json
from lakeformat.iceberg.schema import schema_to_json
from lakeformat.iceberg.types import StructType

__all__ = ["ManifestWriter", "encode_manifest_list", "entry_counts"]

_CODEC = "deflate"
"""The compression of manifests and manifest lists."""
_BLOCK_SIZE = 64 << 20
"""The value that Java writes; no reader uses it."""
_KINDS = {"added": ADDED, "existing": EXISTING, "deleted": DELETED}


@dataclass(frozen=True)
class ManifestWriter:
    """Writes manifests of one partition spec, with entries of data files or of delete files."""

    metadata: TableMetadata
    spec: PartitionSpec
    of_deletes: bool = False

    @cached_property
    def partition(self) -> StructType:
        """The type of the partition values."""
        return partition_type(self.metadata, self.spec)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return manifest_schema(self.metadata.format_version, self.partition)

    @cached_property
    def _header(self) -> dict[str, str]:
        return {
            "schema": _compact(schema_to_json(self.metadata.schema)),
            "schema-id": str(self.metadata.schema.schema_id),
            "partition-spec": _compact(spec_to_json(self.spec)["fields"]),
            "partition-spec-id": str(self.spec.spec_id),
            "format-version": str(self.metadata.format_version),
            "content": "deletes" if self.of_deletes else "data",
        }

    def encode(self, entries: pa.Table) -> bytes:
        """Return the bytes of a manifest with ``entries``, which may be empty."""
        columns = {
            name: _whole(entries.column(name)) for name in entries.column_names if name != "spec_id"
        }
        columns[BLOCK_SIZE] = pa.repeat(pa.scalar(_BLOCK_SIZE, pa.int64()), len(entries))
        return _avro_file(self._schema, columns, len(entries), self._header)

    def describe(self, path: str, length: int, entries: pa.Table, snapshot: Snapshot) -> pa.Table:
        """Return the manifest at ``path`` as a row of the manifest list of ``snapshot``.

        ``length`` is the size of the manifest in bytes, and ``entries`` are its entries.
        """
        number = snapshot.sequence_number
        is_live = pc.not_equal(entries.column("status"), DELETED)
        live = entries.column("sequence_number").filter(is_live)
        row = {
            "manifest_path": path,
            "manifest_length": length,
            "partition_spec_id": self.spec.spec_id,
            "content": int(self.of_deletes),
            "sequence_number": number,
            "min_sequence_number": pc.min(pc.fill_null(live, number)).as_py() if live else number,
            "added_snapshot_id": snapshot.snapshot_id,
            "partitions": partition_summaries(_whole(entries.column("partition"))),
            **entry_counts(entries),
        }
        return pa.Table.from_pylist([row], MANIFEST_SCHEMA)


def entry_counts(entries: pa.Table) -> dict[str, int]:
    """Return the counts of files and rows in ``entries``, as a manifest list stores them."""
    counts: dict[str, int] = {}
    for kind, value in _KINDS.items():
        has_status = pc.equal(entries.column("status"), value)
        rows = entries.column("record_count").filter(has_status)
        counts[f"{kind}_files_count"] = len(rows)
        counts[f"{kind}_rows_count"] = pc.sum(rows).as_py() or 0
    return counts


def encode_manifest_list(version: int, manifests: pa.Table, snapshot: Snapshot) -> bytes:
    """Return the bytes of the manifest list of a snapshot.

    In version 3 ``manifests`` must already have their first row ids.
    """
    header = {
        "snapshot-id": str(snapshot.snapshot_id),
        "parent-snapshot-id": "null" if snapshot.parent_id is None else str(snapshot.parent_id),
        "sequence-number": str(snapshot.sequence_number),
        "first-row-id": str(snapshot.first_row_id),
        "format-version": str(version),
    }
    if version < 3:
        del header["first-row-id"]
    if version < 2:
        del header["sequence-number"]
    columns = {name: _whole(manifests.column(name)) for name in manifests.column_names}
    return _avro_file(list_schema(version), columns, len(manifests), header)


def _avro_file(
    schema: dict[str, Any], columns: Mapping[str, pa.Array], rows: int, header: Mapping[str, str]
) -> bytes:
    records, ends = encode_records(schema, _record_array(schema, columns, rows))
    return pack_records(
        json.dumps(schema), records, ends, codec=_CODEC, zstd_level=0, metadata=header
    )


def _record_array(
    schema: dict[str, Any], columns: Mapping[str, pa.Array], rows: int
) -> pa.StructArray:
    """Return an array of records with the values of the columns, in the field order of the schema.

    The fields of the data file are in a nested record.
    """
    names = [field["name"] for field in schema["fields"]]
    children = [
        _record_array(schema["fields"][place]["type"], columns, rows)
        if name == "data_file"
        else columns[name]
        for place, name in enumerate(names)
    ]
    return pa.StructArray.from_arrays(children, names)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
