"""Ordinary tables of Flink and Spark, with the options their engines set, are cared for here."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake

COLUMNS = [("id", "BIGINT"), ("v", "INT"), ("ts", "TIMESTAMP(3)"), ("dt", "STRING")]

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


def made_by_flink(catalog, tmp_path, options):
    """A table of three commits, of which each key has the newest value of three."""
    table = catalog.create_table(
        "shop.t",
        COLUMNS,
        primary_key=["id", "dt"],
        partition_by=["dt"],
        options={"bucket": "1", "write-only": "true"},
    )
    path = tmp_path / "shop.db/t/schema/schema-0"
    members = json.loads(path.read_bytes())
    members["options"] |= options
    path.write_text(json.dumps(members), encoding="utf-8")
    table = catalog.table("shop.t")
    for value in range(3):
        rows = {"id": [1], "v": [value], "ts": [None], "dt": ["2026-01-01"]}
        table.write(pa.table(rows, schema=table.scan().schema))
    return table


@pytest.mark.parametrize("kind", TABLES)
def test_it_is_healthy_after_a_compaction_and_an_expiry(catalog, tmp_path, kind):
    table = made_by_flink(catalog, tmp_path, TABLES[kind])
    table.compact()
    table.expire_snapshots(retain_max=1, retain_min=1)
    report = table.health()
    assert report.verdict == "healthy"
    assert (report.files.files, report.snapshots.count) == (1, 1)
    assert table.scan().to_arrow()["v"].to_pylist() == [2]


@pytest.mark.parametrize("kind", TABLES)
def test_one_call_cares_for_it(catalog, tmp_path, kind):
    report = made_by_flink(catalog, tmp_path, TABLES[kind]).maintain()
    assert (report.failed, report.obstacles) == ((), ())
    assert report.is_healthy


def test_one_that_publishes_iceberg_metadata_says_what_stands_in_the_way(catalog, tmp_path):
    iceberg = {"metadata.iceberg.storage": "table-location"}
    made_by_flink(catalog, tmp_path, {})
    path = tmp_path / "shop.db/t/schema/schema-0"
    members = json.loads(path.read_bytes())
    path.write_text(json.dumps({**members, "options": members["options"] | iceberg}), "utf-8")
    table = catalog.table("shop.t")
    for care in (table.compact, table.expire_snapshots):
        with pytest.raises(lake.UnsupportedError, match=r"'metadata\.iceberg\.storage' = 'table-"):
            care()
    [note] = table.health().notes
    assert "refused here: write, compact, commit, expire, tag" in note
    assert table.scan().count() == 1
