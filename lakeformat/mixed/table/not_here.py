# SPDX-License-Identifier: Apache-2.0
"""Operations that Mixed tables do not have in this version, with advice for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["NOT_HERE"]

_WRITE = "this version only reads Mixed tables; write with Amoro's connectors for Flink or Spark"
_OPTIMIZE = (
    "this version only reads Mixed tables; Amoro's self-optimizing merges changes and small files"
)
_EXPIRE = "this version only reads Mixed tables; Amoro's table expiry deletes old files"
_HISTORY = "the stores have histories of their own; scan(as_of=…) reads an earlier state"
_CHANGES = (
    "the rows that were inserted and deleted are those of the change store: "
    "table.change.scan(), or table.change.changes(position)"
)

NOT_HERE: Final[Mapping[str, str]] = {
    "analyze": _OPTIMIZE,
    "branches": _HISTORY,
    "changelog": _CHANGES,
    "changes": _CHANGES,
    "commit": _WRITE,
    "compact": _OPTIMIZE,
    "compact_manifests": _OPTIMIZE,
    "consumers": _CHANGES,
    "delete": _WRITE,
    "drop_partitions": _WRITE,
    "expire_partitions": _EXPIRE,
    "expire_snapshots": _EXPIRE,
    "health": "system_table('files') has the files of both stores; explain() of a scan counts them",
    "maintain": _OPTIMIZE,
    "other_compactor": _OPTIMIZE,
    "partition_marks": "check the rows that must have arrived, with check(...)",
    "publish": "readers of Iceberg read each of its stores in place",
    "remove_orphans": _EXPIRE,
    "rescale": "set the property 'change.file-index.hash-bucket' or 'base.file-index.hash-bucket' "
    "in both stores: existing files remain valid",
    "rollback": _HISTORY,
    "snapshot_change": "system_table('files') has the files of both stores",
    "staged": _WRITE,
    "stream": _CHANGES,
    "tags": _HISTORY,
    "truncate": _WRITE,
    "update": _WRITE,
    "upsert": _WRITE,
    "watermarks": "check the age of the newest time in a column, with check(freshness=…)",
    "write": _WRITE,
}
