# SPDX-License-Identifier: Apache-2.0
"""``$tags``: the tags of the table, which are named snapshots."""

from __future__ import annotations

from lakeformat.paimon.metadata.tag import Tag, read_tags
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source
from lakeformat.types.duration_text import java_duration

__all__ = ["TAGS"]


def _tags(source: Source) -> list[Tag]:
    handle = source.handle
    return read_tags(handle.storage, handle.layout, handle.options.file_operation_threads)


def _retained(tag: Tag) -> str | None:
    return None if tag.time_retained is None else java_duration(tag.time_retained)


TAGS = declare(
    "tags",
    _tags,
    [
        column("tag_name", "STRING NOT NULL", "name"),
        column("snapshot_id", "BIGINT NOT NULL", "snapshot.id"),
        column("schema_id", "BIGINT NOT NULL", "snapshot.schema_id"),
        column("commit_time", "TIMESTAMP(3) NOT NULL", "snapshot.time_millis"),
        column("record_count", "BIGINT", "snapshot.total_record_count"),
        column("create_time", "TIMESTAMP(3)", "create_time"),
        column("time_retained", "STRING", lambda rows: [_retained(tag) for tag in rows]),
    ],
)
