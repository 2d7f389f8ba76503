# SPDX-License-Identifier: Apache-2.0
"""The system table ``manifests``: the manifests of one snapshot, with their partitions as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest_list import MANIFEST_SCHEMA, read_manifest_list
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.partition_spec import PartitionField
from lakeformat.iceberg.partition_text import partition_text
from lakeformat.iceberg.read.single_values import single_values
from lakeformat.iceberg.types import PrimitiveType, Type

__all__ = ["manifests"]

_COUNTS = ("added", "existing", "deleted")
_CONTENTS = ("data", "delete")
_SUMMARY = pa.struct(
    [
        ("contains_null", pa.bool_()),
        ("contains_nan", pa.bool_()),
        ("lower_bound", pa.string()),
        ("upper_bound", pa.string()),
    ]
)
_SCHEMA = pa.schema(
    [
        ("content", pa.int32()),
        ("path", pa.string()),
        ("length", pa.int64()),
        ("partition_spec_id", pa.int32()),
        ("added_snapshot_id", pa.int64()),
        *(
            (f"{count}_{content}_files_count", pa.int32())
            for content in _CONTENTS
            for count in _COUNTS
        ),
        ("partition_summaries", pa.list_(_SUMMARY)),
    ]
)


def manifests(loaded: LoadedMetadata, snapshot: Snapshot | None) -> pa.Table:
    """Return the manifests of a snapshot; no rows if ``snapshot`` is None."""
    found = MANIFEST_SCHEMA.empty_table()
    if snapshot is not None:
        found = read_manifest_list(loaded.places, snapshot)
    rows = [_row(loaded, manifest) for manifest in found.to_pylist()]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _row(loaded: LoadedMetadata, manifest: Mapping[str, Any]) -> dict[str, Any]:
    row = {
        "content": manifest["content"],
        "path": manifest["manifest_path"],
        "length": manifest["manifest_length"],
        "partition_spec_id": manifest["partition_spec_id"],
        "added_snapshot_id": manifest["added_snapshot_id"],
        "partition_summaries": _summaries(loaded, manifest),
    }
    for number, content in enumerate(_CONTENTS):
        for count in _COUNTS:
            is_its_own = manifest["content"] == number
            row[f"{count}_{content}_files_count"] = (
                manifest[f"{count}_files_count"] if is_its_own else 0
            )
    return row


def _summaries(loaded: LoadedMetadata, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    spec = loaded.metadata.spec_of(manifest["partition_spec_id"])
    types = [field.type for field in partition_type(loaded.metadata, spec).fields]
    return [
        {
            "contains_null": summary["contains_null"],
            "contains_nan": summary["contains_nan"],
            "lower_bound": _text(field, kind, summary["lower_bound"]),
            "upper_bound": _text(field, kind, summary["upper_bound"]),
        }
        for summary, field, kind in zip(
            manifest["partitions"] or (), spec.fields, types, strict=False
        )
    ]


def _text(field: PartitionField, kind: Type, bound: bytes | None) -> str:
    assert isinstance(kind, PrimitiveType)
    values = single_values(pa.array([bound], pa.binary()), kind)
    return partition_text(field.transform, kind, values)
