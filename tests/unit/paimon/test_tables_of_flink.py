"""Ordinary tables of Flink and Spark, with the options their engines set, are cared for here."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.flink_options import TABLES

COLUMNS = [("id", "BIGINT"), ("v", "INT"), ("ts", "TIMESTAMP(3)"), ("dt", "STRING")]


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


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", TABLES)
def test_it_is_healthy_after_a_compaction_and_an_expiry(catalog, tmp_path, kind):
    table = made_by_flink(catalog, tmp_path, TABLES[kind])
    table.compact()
    table.expire_snapshots(retain_max=1, retain_min=1)
    report = table.health()
    assert report.verdict == "healthy"
    assert (report.files.files, report.snapshots.count) == (1, 1)
    assert table.scan().to_arrow()["v"].to_pylist() == [2]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", TABLES)
def test_one_call_cares_for_it(catalog, tmp_path, kind):
    report = made_by_flink(catalog, tmp_path, TABLES[kind]).maintain()
    assert (report.failed, report.obstacles) == ((), ())
    assert report.is_healthy


def test_one_that_publishes_iceberg_metadata_says_what_stands_in_the_way(catalog, tmp_path):
    iceberg = {"metadata.iceberg.storage": "glue-catalog"}
    made_by_flink(catalog, tmp_path, {})
    path = tmp_path / "shop.db/t/schema/schema-0"
    members = json.loads(path.read_bytes())
    path.write_text(json.dumps({**members, "options": members["options"] | iceberg}), "utf-8")
    table = catalog.table("shop.t")
    for care in (table.compact, table.expire_snapshots):
        with pytest.raises(lake.UnsupportedError, match=r"'metadata\.iceberg\.storage' = 'glue-"):
            care()
    [note] = table.health().notes
    assert "this version refuses: write, compact, commit, expire, tag" in note
    assert table.scan().count() == 1
