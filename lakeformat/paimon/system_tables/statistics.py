# SPDX-License-Identifier: Apache-2.0
"""``$statistics``: the result of ANALYZE that a snapshot publishes or inherits."""

from __future__ import annotations

import json

from lakeformat.paimon.metadata.statistics import TableStatistics, read_statistics
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source

__all__ = ["STATISTICS"]


def _statistics(source: Source) -> list[TableStatistics]:
    snapshot = source.snapshot
    if snapshot is None or snapshot.statistics is None:
        return []
    handle = source.handle
    return [read_statistics(handle.storage, handle.layout, snapshot.statistics)]


def _column_json(statistics: TableStatistics) -> str:
    return json.dumps(statistics.column_members(), ensure_ascii=False)


STATISTICS = declare(
    "statistics",
    _statistics,
    [
        column("snapshot_id", "BIGINT NOT NULL", "snapshot_id"),
        column("schema_id", "BIGINT NOT NULL", "schema_id"),
        column("mergedRecordCount", "BIGINT", "merged_record_count"),
        column("mergedRecordSize", "BIGINT", "merged_record_size"),
        column(
            "colstat",
            "STRING",
            lambda rows: [_column_json(found) for found in rows],
        ),
    ],
    of_snapshot=True,
)
