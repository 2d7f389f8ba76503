# SPDX-License-Identifier: Apache-2.0
"""``$manifests``: the manifests of a snapshot."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakeformat.paimon.metadata.manifest_list import ManifestMeta
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.live_files import snapshot_manifests
from lakeformat.paimon.system_tables.partition_text import PartitionTexts
from lakeformat.paimon.system_tables.source import Source

__all__ = ["MANIFESTS"]


class _Manifests(list[ManifestMeta]):
    def __init__(self, source: Source) -> None:
        super().__init__(snapshot_manifests(source))
        self.schema = source.handle.schema

    def partitions(self, get: Callable[[ManifestMeta], bytes]) -> pa.Array:
        rows = pa.array([get(meta) for meta in self], pa.binary())
        return PartitionTexts(self.schema, rows, self._name).in_braces()

    def _name(self, row: int) -> str:
        return f"_PARTITION_STATS of {self[row].file_name} in {self[row].named_by}"


MANIFESTS = declare(
    "manifests",
    _Manifests,
    [
        column("file_name", "STRING NOT NULL", "file_name"),
        column("file_size", "BIGINT NOT NULL", "file_size"),
        column("num_added_files", "BIGINT NOT NULL", "num_added_files"),
        column("num_deleted_files", "BIGINT NOT NULL", "num_deleted_files"),
        column("schema_id", "BIGINT NOT NULL", "schema_id"),
        column(
            "min_partition_stats",
            "STRING",
            lambda found: found.partitions(lambda meta: meta.partition_stats.min_values),
        ),
        column(
            "max_partition_stats",
            "STRING",
            lambda found: found.partitions(lambda meta: meta.partition_stats.max_values),
        ),
        column("min_row_id", "BIGINT", "min_row_id"),
        column("max_row_id", "BIGINT", "max_row_id"),
    ],
    of_snapshot=True,
)
