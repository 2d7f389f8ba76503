"""``$snapshots``, ``$schemas`` and ``$options``: what the table was, and what it is set to."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from lakeformat.metadata.schema_file import read_schema, schema_ids
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.metadata.snapshot_directory import read_snapshot_if_present, snapshot_ids
from lakeformat.schema import TableSchema
from lakeformat.system_tables.declaration import column, declare
from lakeformat.system_tables.source import Source
from lakeformat.type_text import field_to_json

__all__ = ["OPTIONS", "SCHEMAS", "SNAPSHOTS"]


def _snapshots(source: Source) -> list[Snapshot]:
    """Those that have not expired, oldest first."""
    storage, layout = source.handle.storage, source.handle.layout
    found = (
        read_snapshot_if_present(storage, layout, number)
        for number in snapshot_ids(storage, layout)
    )
    return [snapshot for snapshot in found if snapshot is not None]


def _schemas(source: Source) -> list[TableSchema]:
    """Every version, oldest first."""
    storage, layout = source.handle.storage, source.handle.layout
    return [read_schema(storage, layout, number) for number in schema_ids(storage, layout)]


class _SetOption(NamedTuple):
    key: str
    value: str


def _options(source: Source) -> list[_SetOption]:
    """What the table sets, by key; defaults are in the reference of options."""
    return [_SetOption(*item) for item in sorted(source.handle.options.to_dict().items())]


def _flat_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


SNAPSHOTS = declare(
    "snapshots",
    "Snapshots that have not expired, one per commit.",
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

SCHEMAS = declare(
    "schemas",
    "Versions of the schema, the last one in force.",
    _schemas,
    [
        column("schema_id", "BIGINT NOT NULL", "id"),
        column(
            "fields",
            "STRING NOT NULL",
            lambda rows: [_flat_json([*map(field_to_json, schema.fields)]) for schema in rows],
        ),
        column(
            "partition_keys",
            "STRING NOT NULL",
            lambda rows: [_flat_json(schema.partition_keys) for schema in rows],
        ),
        column(
            "primary_keys",
            "STRING NOT NULL",
            lambda rows: [_flat_json(schema.primary_keys) for schema in rows],
        ),
        column(
            "options",
            "STRING NOT NULL",
            lambda rows: [_flat_json(schema.table_options.to_dict()) for schema in rows],
        ),
        column("comment", "STRING", "comment"),
        column("update_time", "TIMESTAMP(3) NOT NULL", "time_millis"),
    ],
)

OPTIONS = declare(
    "options",
    "Options the table sets itself.",
    _options,
    [
        column("key", "STRING NOT NULL", "key"),
        column("value", "STRING NOT NULL", "value"),
    ],
)
