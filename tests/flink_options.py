"""The options that engines set on ordinary tables, by the feature they belong to."""

from __future__ import annotations

__all__ = ["TABLES"]

TABLES: dict[str, dict[str, str]] = {
    "a watermark": {
        "schema.watermark.0.rowtime": "ts",
        "schema.watermark.0.strategy.expr": "`ts` - INTERVAL '5' SECOND",
        "schema.watermark.0.strategy.data-type": "TIMESTAMP(3)",
    },
    "a computed column": {
        "schema.4.name": "p",
        "schema.4.data-type": "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL",
        "schema.4.expr": "PROCTIME()",
    },
    "partitions marked as done": {
        "partition.time-interval": "1 d",
        "partition.idle-time-to-done": "15 min",
    },
    "a Hive metastore": {"metastore.partitioned-table": "true"},
    "no Iceberg metadata": {"metadata.iceberg.storage": "disabled"},
    "properties of Spark": {"created_by": "dbt"},
    "a consumer": {"consumer-id": "job1", "consumer.ignore-progress": "true"},
    "tags by watermark": {
        "tag.automatic-creation": "watermark",
        "snapshot.watermark-idle-timeout": "10 min",
    },
    "tags by savepoint": {"sink.savepoint.auto-tag": "true"},
    "changelogs in packs": {"precommit-compact": "true"},
    "large files of deletion vectors": {
        "deletion-vectors.enabled": "true",
        "deletion-vector.index-file.target-size": "4 mb",
    },
    "manifests without statistics": {"manifest.delete-file-drop-stats": "true"},
    "overwrites as changes": {"streaming-read-overwrite": "true"},
    "memory of writers": {"sink.writer-cpu": "2", "sink.writer-memory": "4 gb"},
    "no dictionaries": {"parquet.enable.dictionary": "false"},
    "rows of a file": {"target-file-row-num": "1000000"},
    "blocks of a file": {"file.block-size": "128 mb"},
    "a materialized table": {
        "type": "materialized-table",
        "materialized-table.definition-query": "SELECT 1",
        "materialized-table.refresh-mode": "CONTINUOUS",
    },
}
