# SPDX-License-Identifier: Apache-2.0
"""``$snapshots``: every snapshot that has not expired."""

from __future__ import annotations

from lakeformat.paimon.metadata.existing_snapshots import read_snapshots
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source

__all__ = ["SNAPSHOTS"]


def _snapshots(source: Source) -> list[Snapshot]:
    storage, layout = source.handle.storage, source.handle.layout
    threads = source.handle.options.file_operation_threads
    return read_snapshots(storage, layout, snapshot_ids(storage, layout), threads)


SNAPSHOTS = declare(
    "snapshots",
    _snapshots,
    [
        column("snapshot_id", "BIGINT NOT NULL", "id"),
        column("schema_id", "BIGINT NOT NULL", "schema_id"),
        column("commit_user", "STRING NOT NULL", "commit_user"),
        column("commit_identifier", "BIGINT NOT NULL", "commit_identifier"),
        column(
            "commit_kind",
            "STRING NOT NULL",
            lambda rows: [str(snapshot.commit_kind) for snapshot in rows],
        ),
        column("commit_time", "TIMESTAMP(3) NOT NULL", "time_millis"),
        column("base_manifest_list", "STRING NOT NULL", "base_manifest_list"),
        column("delta_manifest_list", "STRING NOT NULL", "delta_manifest_list"),
        column("changelog_manifest_list", "STRING", "changelog_manifest_list"),
        column("total_record_count", "BIGINT", "total_record_count"),
        column("delta_record_count", "BIGINT", "delta_record_count"),
        column("changelog_record_count", "BIGINT", "changelog_record_count"),
        column("watermark", "BIGINT", "watermark"),
        column("next_row_id", "BIGINT", "next_row_id"),
        column("operation", "STRING", "operation"),
        column("writer_version", "STRING", "writer_version"),
    ],
)
