# SPDX-License-Identifier: Apache-2.0
"""Declares the commands that print system tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakeformat.cli.output import Shown
from lakeformat.types.byte_size import size

__all__ = ["METADATA_COMMANDS", "MetadataCommand"]


@dataclass(frozen=True, slots=True)
class MetadataCommand:
    """A command that prints one system table."""

    name: str
    meaning: str
    """The help text, in one sentence."""
    columns: Sequence[Shown]
    nothing: str
    """The noun for the message "<table> has no <noun>" if the system table is empty."""
    system_table: str = ""
    of_snapshot: bool = False
    """True if the system table shows one snapshot; the command then has --snapshot and --tag."""

    @property
    def table_name(self) -> str:
        """The name of the system table, such as ``files`` for ``shop.orders$files``."""
        return self.system_table or self.name


def _in_braces(partition: str) -> str:
    return "" if partition == "{}" else partition


def _instant(text: str) -> str:
    """Return an ISO time in UTC as ``2024-01-31 10:00:00Z``. A number of milliseconds is not
    changed.
    """
    return text if text.endswith("ms") else f"{text.replace('T', ' ')}Z"


def _second(text: str) -> str:
    """Return an ISO local time as ``2024-01-31 10:00:00``, without its fraction of a second."""
    return text.replace("T", " ").partition(".")[0]


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _columns(fields: str) -> str:
    return ", ".join(f"{field['name']} {_type_text(field['type'])}" for field in json.loads(fields))


def _type_text(column_type: Any) -> str:
    """Return the SQL text of a column type, which is JSON in the system table."""
    if isinstance(column_type, str):
        return column_type
    kind, _, rest = column_type["type"].partition(" ")
    parts = [
        _type_text(column_type[part]) for part in ("key", "value", "element") if part in column_type
    ]
    parts += [f"{f['name']} {_type_text(f['type'])}" for f in column_type.get("fields", ())]
    return f"{kind}<{', '.join(parts)}>{' ' if rest else ''}{rest}"


def _names(keys: str) -> str:
    return ", ".join(json.loads(keys))


def _column_statistics(statistics: str) -> str:
    """Return one line for each column, such as ``id: 2 distinct, 0 null, 1 … 30``."""
    lines = []
    for name, found in json.loads(statistics).items():
        counts = [("distinctCount", "distinct"), ("nullCount", "null")]
        parts = [f"{found[key]} {word}" for key, word in counts if key in found]
        if "min" in found and "max" in found:
            parts.append(f"{found['min']} … {found['max']}")
        lines.append(f"{name}: {', '.join(parts)}")
    return "\n".join(lines)


_ROWS = Shown("record_count", "rows")
_SIZE = Shown("file_size_in_bytes", "size", size)
_PARTITION = Shown("partition", "partition", _in_braces)
_BUCKET = Shown("bucket", "bucket")

METADATA_COMMANDS = (
    MetadataCommand(
        "snapshots",
        "Snapshots that have not expired.",
        (
            Shown("snapshot_id", "id"),
            Shown("commit_time", "time", _instant),
            Shown("commit_kind", "kind"),
            Shown("delta_record_count", "added rows"),
            Shown("total_record_count", "total rows"),
            Shown("commit_user", "commit user"),
            Shown("commit_identifier", "identifier"),
        ),
        nothing="snapshot yet",
    ),
    MetadataCommand(
        "schemas",
        "Versions of the schema, the current one last. Only for Paimon tables.",
        (
            Shown("schema_id", "id"),
            Shown("update_time", "time", _instant),
            Shown("primary_keys", "primary key", _names),
            Shown("partition_keys", "partitioned by", _names),
            Shown("fields", "columns", _columns),
        ),
        nothing="schema",
    ),
    MetadataCommand(
        "options",
        "Options that are set on the table, or the properties of an Iceberg or Mixed table.",
        (Shown("key", "option"), Shown("value", "value")),
        nothing="option of its own",
    ),
    MetadataCommand(
        "manifests",
        "Manifests of the snapshot.",
        (
            Shown("file_name", "manifest"),
            Shown("file_size", "size", size),
            Shown("num_added_files", "added files"),
            Shown("num_deleted_files", "deleted files"),
            Shown("min_partition_stats", "from partition", _in_braces),
            Shown("max_partition_stats", "to partition", _in_braces),
        ),
        nothing="manifest",
        of_snapshot=True,
    ),
    MetadataCommand(
        "files",
        "Data files of the snapshot; of an Iceberg table also delete files.",
        (
            _PARTITION,
            _BUCKET,
            Shown("level", "level"),
            _ROWS,
            _SIZE,
            Shown("creation_time", "created", _second),
            Shown("min_key", "from key"),
            Shown("max_key", "to key"),
            Shown("file_path", "file", _file_name),
        ),
        nothing="data file",
        of_snapshot=True,
    ),
    MetadataCommand(
        "partitions",
        "Partitions of the snapshot, with rows, files and sizes.",
        (
            _PARTITION,
            _ROWS,
            Shown("deleted_record_count", "deleted rows"),
            Shown("file_count", "files"),
            _SIZE,
            Shown("last_update_time", "updated", _second),
        ),
        nothing="partition",
        of_snapshot=True,
    ),
    MetadataCommand(
        "buckets",
        "Buckets of the snapshot, with rows, files and sizes. Only for Paimon tables.",
        (
            _PARTITION,
            _BUCKET,
            _ROWS,
            Shown("file_count", "files"),
            _SIZE,
            Shown("last_update_time", "updated", _second),
        ),
        nothing="bucket",
        of_snapshot=True,
    ),
    MetadataCommand(
        "tags",
        "Tags: named snapshots, readable even after expiry.",
        (
            Shown("tag_name", "tag"),
            Shown("snapshot_id", "snapshot"),
            Shown("commit_time", "committed", _instant),
            Shown("record_count", "rows"),
            Shown("create_time", "created", _second),
            Shown("time_retained", "retained"),
        ),
        nothing="tag",
    ),
    MetadataCommand(
        "branches",
        "Branches: separate histories of the same table.",
        (Shown("branch_name", "branch"), Shown("create_time", "created", _instant)),
        nothing="branch",
    ),
    MetadataCommand(
        "consumers",
        "Consumers: readers of changes, and the snapshot that each reads next. Only for Paimon "
        "tables; `lake consumer list` takes a table of any format.",
        (Shown("consumer_id", "consumer"), Shown("next_snapshot_id", "next snapshot")),
        nothing="consumer",
    ),
    MetadataCommand(
        "statistics",
        "Row count, size and column statistics that the last analysis has stored: see "
        "`lake analyze`. Only for Paimon tables.",
        (
            Shown("snapshot_id", "snapshot"),
            Shown("mergedRecordCount", "rows"),
            Shown("mergedRecordSize", "size", size),
            Shown("colstat", "columns", _column_statistics),
        ),
        nothing="statistics",
        of_snapshot=True,
    ),
    MetadataCommand(
        "indexes",
        "Index files of the snapshot: key hashes, deletion vectors and global indexes. Only for "
        "Paimon tables.",
        (
            _PARTITION,
            _BUCKET,
            Shown("index_type", "type"),
            Shown("row_count", "entries"),
            Shown("file_size", "size", size),
            Shown("file_name", "file"),
        ),
        nothing="index",
        system_table="table_indexes",
        of_snapshot=True,
    ),
)
