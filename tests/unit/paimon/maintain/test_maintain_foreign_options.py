"""Ordinary tables of Flink and Spark, with options of those engines, are healed by one call."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeformat as lake
from lakeformat.paimon.options import find_option
from lakeformat.paimon.options.foreign import Trait, find_foreign
from lakeformat.paimon.options.operation import Operation
from lakeformat.tables.maintain.maintain_report import MaintainReport
from tests.crashed_writer import crashed_table

LISTED = Path(__file__).resolve().parents[3] / "data/paimon_options.tsv"
VALUES = dict(
    line.split("\t")
    for line in LISTED.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
TABLES = {
    "watermark": {
        "schema.watermark.0.rowtime": "ts",
        "schema.watermark.0.strategy.expr": "`ts` - INTERVAL '5' SECOND",
        "schema.watermark.0.strategy.data-type": "TIMESTAMP(3)",
    },
    "computed column": {
        "schema.4.name": "p",
        "schema.4.data-type": "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL",
        "schema.4.expr": "PROCTIME()",
    },
    "mark done": {"partition.time-interval": "1 d", "partition.idle-time-to-done": "15 min"},
    "hive metastore": {"metastore.partitioned-table": "true"},
    "iceberg off": {"metadata.iceberg.storage": "disabled"},
    "spark tblproperties": {"created_by": "dbt"},
    "consumer": {"consumer-id": "job1", "consumer.ignore-progress": "true"},
    "tag auto and idle": {
        "tag.automatic-creation": "watermark",
        "snapshot.watermark-idle-timeout": "10 min",
    },
    "savepoint tags": {"sink.savepoint.auto-tag": "true"},
    "precommit": {"precommit-compact": "true"},
    "target of vectors": {
        "deletion-vectors.enabled": "true",
        "deletion-vector.index-file.target-size": "4 mb",
    },
    "drop stats": {"manifest.delete-file-drop-stats": "true"},
    "streaming overwrite": {"streaming-read-overwrite": "true"},
    "writer cpu": {"sink.writer-cpu": "2", "sink.writer-memory": "4 gb"},
    "parquet dictionary": {"parquet.enable.dictionary": "false"},
    "target rows": {"target-file-row-num": "1000000"},
    "block size": {"file.block-size": "128 mb"},
    "materialized": {
        "materialized-table.definition-query": "SELECT 1",
        "materialized-table.refresh-mode": "CONTINUOUS",
    },
}
"""Options as DDL of Flink and Spark leaves them."""


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """The table of a crashed writer."""
    home = tmp_path_factory.mktemp("template")
    catalog = lake.open_catalog(str(home))
    catalog.create_database("shop")
    options = {"bucket": "1", "snapshot.num-retained.min": "1"}
    crashed_table(catalog, commits=8, dead_files=1, consumer=None, options=options)
    return home / "shop.db/orders"


@pytest.fixture
def maintained(template, tmp_path) -> Callable[[dict[str, str]], MaintainReport]:
    """Maintains a copy of it to which another engine has given options."""

    def maintain(options: dict[str, str]) -> MaintainReport:
        place = tmp_path / "shop.db/orders"
        shutil.copytree(template, place)
        path = place / "schema/schema-0"
        members = json.loads(path.read_bytes())
        members["options"] |= options
        path.write_text(json.dumps(members), encoding="utf-8")
        return lake.open_table(f"file://{place}").maintain(executor="serial")

    return maintain


@pytest.mark.sampled(6)
@pytest.mark.parametrize("what", TABLES)
def test_a_table_with_options_of_its_engine_is_healed_by_one_call(maintained, what):
    report = maintained(TABLES[what])
    assert (str(report.before.verdict), str(report.after.verdict)) == ("unhealthy", "healthy")
    assert (report.after.files, report.after.level_0_files) == (1, 0)
    assert (report.after.dead_files, report.obstacles) == (0, ())


def test_a_table_that_publishes_iceberg_metadata_is_refused_by_the_option_s_name(maintained):
    report = maintained({"metadata.iceberg.storage": "glue-catalog"})
    [refused] = [each for each in report.obstacles if "failed" in each.finding]
    assert refused.finding.startswith(
        "compact and expire failed: 'metadata.iceberg.storage' = 'glue-catalog' publishes"
    )
    assert refused.advice.startswith("Use the engine that set it; or set it to 'disabled'")
    assert report.after.dead_files == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("key", VALUES)
def test_each_option_is_cared_for_or_named_as_what_stands_in_the_way(maintained, key):
    report = maintained({key: VALUES[key]})
    foreign = None if find_option(key) else find_foreign(key)
    is_refused = foreign is not None and any(
        foreign.forbids(operation, VALUES[key], frozenset({Trait.KEYED, Trait.MAIN}))
        for operation in (Operation.COMPACT, Operation.EXPIRE)
    )
    named = [each.finding for each in report.obstacles if repr(key) in each.finding]
    assert bool(named) == is_refused
    assert bool(report.obstacles) == is_refused
