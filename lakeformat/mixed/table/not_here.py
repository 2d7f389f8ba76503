# SPDX-License-Identifier: Apache-2.0
"""Operations that Mixed tables do not have in this version, with advice for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["NOT_HERE", "REFUSED_ARGUMENTS"]

_STAGED = "table.write(rows, commit=CommitId(…)) writes and commits at once"
_ANALYZE = "it needs no statistics, because reads use the bounds of columns in the manifests"
_PARTITIONS = "delete old rows with delete(where), or let Amoro's expiry of data drop partitions"
_HISTORY = "the stores have histories of their own; scan(as_of=…) reads an earlier state"
_CHANGES = "the change store is the changelog: table.changes(position) reads it"

NOT_HERE: Final[Mapping[str, str]] = {
    "analyze": _ANALYZE,
    "analyze_partitions": _ANALYZE,
    "branches": _HISTORY,
    "changelog": _CHANGES,
    "compact_deletes": "table.plan_optimizing() shows what is due, and table.compact() merges "
    "changes and small files",
    "compact_manifests": "each commit merges small manifests, unless "
    "commit.manifest-merge.enabled is false",
    "expire_partitions": _PARTITIONS,
    "ingest_changes": "in a Python function, read source.changes(position) and write the rows with "
    "target.write",
    "mark_partitions_done": "let readers check the rows that must have arrived: check(...)",
    "partition_marks": "check the rows that must have arrived, with check(...)",
    "partition_rows": "check the rows that must have arrived, with check(...)",
    "plan_drop_partitions": "scan(partitions=[...]) reads the rows that drop_partitions([...]) "
    "deletes",
    "publish": "readers of Iceberg read each of its stores in place",
    "replace_commit": "write the rows again: each row replaces the row of its key. With "
    "write.upsert.enabled=false first delete the old rows",
    "rescale": "set the property 'change.file-index.hash-bucket' or 'base.file-index.hash-bucket' "
    "with catalog.alter_table(name, set_option(…)): existing files remain valid",
    "rollback": _HISTORY,
    "snapshot_change": "system_table('files') has the files of both stores",
    "staged": _STAGED,
    "tags": _HISTORY,
    "watermarks": "check the age of the newest time in a column, with check(freshness=…)",
    "touched_partitions": "leave out partition_column, and read table.changes(position)",
}

_EVERY_PARTITION = "leave it out, because the table properties decide for each partition"
_ORDER = "leave it out: files are merged by key and have no sort order"
_BATCH = (
    "leave it out, because with conflict='transaction-order' the call itself begins a batch. To "
    "compute rows from the table, call batch = table.begin() in Python, and read with batch.scan()"
)
_EVENT_TIME = "keep the event time in a column, or in properties"
_OF_PAIMON = {"read_snapshot": _BATCH}
_BEGIN = (
    "call batch = table.begin(), pass transaction=batch.transaction to the writers, and pass their "
    "messages to batch.commit. In Spark, spark_jobs.write_table(rows, table) does all of this if "
    "it gets conflict= or a mode other than 'append'"
)

REFUSED_ARGUMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "commit": {
        "conflict": _BEGIN,
        "overwrite": _BEGIN,
        "read_snapshot": _BATCH,
        "watermark": _EVENT_TIME,
    },
    "compact": {
        "buckets": _EVERY_PARTITION,
        "idle": _EVERY_PARTITION,
        "max_commits": "leave it out, because one commit publishes all merged rows",
        "order_by": _ORDER,
        "order_strategy": _ORDER,
        "partitions": _EVERY_PARTITION,
        "where": _EVERY_PARTITION,
    },
    "expire_snapshots": {
        "clean_metadata": "leave it out: older schemas show if the type of a key column was "
        "changed",
        "limit": "leave it out, because one commit of each store expires all snapshots that are "
        "due",
        "retain_max": "pass retain_min and older_than, which decide together",
    },
    "delete": _OF_PAIMON,
    "remove_orphans": {
        "executor": "leave out executor and engine='spark', because this process does the work",
        "external_paths": "leave it out, because only the directories of the stores are searched",
    },
    "update": _OF_PAIMON,
    "write": {
        "watermark": _EVENT_TIME,
        **_OF_PAIMON,
    },
}
"""The arguments that an operation does not take, and the advice for each."""
