# SPDX-License-Identifier: Apache-2.0
"""``$table_indexes``: the index files of a snapshot: hash, deletion-vector and global indexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakeformat.paimon.metadata.index_manifest import (
    GlobalIndexMeta,
    IndexManifestEntry,
    read_index_manifest,
)
from lakeformat.paimon.metadata.referrer import referred_to_by
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.partition_text import PartitionTexts
from lakeformat.paimon.system_tables.source import Source

__all__ = ["TABLE_INDEXES", "read_index_state"]

_RANGES = "ARRAY<ROW<f0 STRING NOT NULL, f1 INT NOT NULL, f2 INT NOT NULL, _CARDINALITY BIGINT>>"


class _Indexes(list[IndexManifestEntry]):
    def __init__(self, source: Source) -> None:
        self.schema = source.handle.schema
        self.source_name = source.name
        super().__init__(read_index_state(source))

    def partitions(self) -> PartitionTexts:
        rows = pa.array([entry.partition for entry in self], pa.binary())
        return PartitionTexts(self.schema, rows, self._name)

    def _name(self, row: int) -> str:
        return f"_PARTITION of index file {self[row].file_name} of {self.source_name}"

    def of_global(self, get: Callable[[GlobalIndexMeta], Any]) -> list[Any]:
        metas = [entry.global_index for entry in self]
        return [None if meta is None else get(meta) for meta in metas]

    def field_names(self) -> list[str | None]:
        """Return the columns of each global index as text; None for other index files, or if a
        column was dropped.
        """
        by_id = {field.id: field.name for field in self.schema.fields}
        found: list[str | None] = self.of_global(
            lambda meta: _joined([by_id.get(field_id) for field_id in _field_ids(meta)])
        )
        return found


def read_index_state(source: Source) -> list[IndexManifestEntry]:
    """Return every index file of the snapshot."""
    snapshot, handle = source.snapshot, source.handle
    if snapshot is None or snapshot.index_manifest is None:
        return []
    with referred_to_by(source.name):
        return read_index_manifest(handle.storage, handle.layout, snapshot.index_manifest)


def _field_ids(meta: GlobalIndexMeta) -> list[int]:
    return [meta.index_field_id, *(meta.extra_field_ids or ())]


def _joined(names: list[str | None]) -> str | None:
    known = [name for name in names if name is not None]
    return ",".join(known) if len(known) == len(names) else None


def _ranges(entry: IndexManifestEntry) -> list[dict[str, Any]] | None:
    if entry.ranges is None:
        return None
    return [
        {"f0": r.data_file_name, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality}
        for r in entry.ranges
    ]


TABLE_INDEXES = declare(
    "table_indexes",
    _Indexes,
    [
        column("partition", "STRING", lambda indexes: indexes.partitions().in_braces()),
        column("bucket", "INT NOT NULL", "bucket"),
        column("index_type", "STRING NOT NULL", "index_type"),
        column("file_name", "STRING NOT NULL", "file_name"),
        column("file_size", "BIGINT NOT NULL", "file_size"),
        column("row_count", "BIGINT NOT NULL", "row_count"),
        column("dv_ranges", _RANGES, lambda found: [_ranges(e) for e in found]),
        column(
            "row_range_start", "BIGINT", lambda found: found.of_global(lambda m: m.row_range_start)
        ),
        column("row_range_end", "BIGINT", lambda found: found.of_global(lambda m: m.row_range_end)),
        column("index_field_id", "INT", lambda found: found.of_global(lambda m: m.index_field_id)),
        column("index_field_name", "STRING", _Indexes.field_names),
    ],
    of_snapshot=True,
)
