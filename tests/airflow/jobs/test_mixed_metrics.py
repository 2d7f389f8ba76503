"""Metrics of tasks on a Mixed table: the numbers of both stores, as for other tables."""

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.compact_database import LakeCompactDatabaseOperator
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.operators.maintain import LakeMaintainOperator
from airflow_provider_lake.operators.remove_orphans import LakeRemoveOrphansOperator
from tests.airflow.contexts import task_context

NAMES = ("rows_in", "rows_out", "files_in", "files_out", "bytes_in", "bytes_out")


@pytest.fixture
def orders(tmp_path, connect):
    options = {"format": "iceberg"}
    connect(
        "lake_default", conn_type="lake", extra={"warehouse": str(tmp_path), "options": options}
    )
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    columns = [("id", "BIGINT"), ("name", "STRING")]
    table = catalog.create_table("shop.orders", columns, format="mixed", primary_key=["id"])
    table.write(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    return table


def do(operator, context=None, **arguments):
    return operator(task_id="work", **arguments).execute(context or task_context())


def test_written_rows_and_files_count_once(told, orders, tmp_path):
    source = tmp_path / "people.csv"
    source.write_text("id,name\n1,ada\n2,bob\n")
    arguments = {"table": "shop.orders", "source": str(source), "format": "csv"}
    report = do(LakeIngestOperator, context := task_context(), **arguments)["report"]
    assert told.numbers() == {
        "rows_out": 2,
        "files_out": report["files"],
        "bytes_out": report["bytes"],
    }
    assert report["files"] > 1
    told.clear()
    do(LakeIngestOperator, context, **arguments)
    assert told.numbers() == {"replayed": 1}


@pytest.mark.parametrize("operator", [LakeCompactOperator, LakeCompactDatabaseOperator])
def test_a_compaction_counts_what_it_read_and_wrote(told, orders, operator):
    named = {"table": "shop.orders"} if operator is LakeCompactOperator else {"database": "shop"}
    report = do(operator, **named)["report"]
    if operator is LakeCompactDatabaseOperator:
        [of_table] = report["tables"]
        report = of_table["report"]
    found = told.numbers()
    assert found == {name: report[name] for name in NAMES}
    assert (found["rows_in"], found["rows_out"]) == (2, 2)
    told.clear()
    do(LakeCompactOperator, task_context("another"), table="shop.orders")
    assert told.numbers() == {"skipped": 1}


def test_expired_files_of_both_stores_count(told, orders):
    orders.compact(strategy="full", executor="serial")
    orders.write(pa.table({"id": [3], "name": ["c"]}))
    orders.compact(strategy="full", executor="serial")
    report = do(LakeExpireSnapshotsOperator, table="shop.orders", older_than="1 ms")["report"]
    assert report["files"], report
    assert told.numbers() == {
        "files_removed": sum(report["files"].values()),
        "bytes_removed": report["bytes"],
    }
    assert sum(report["files"].values()) == sum(
        sum(report[store]["files"].values()) for store in ("change", "base")
    )


def test_a_maintenance_health_and_orphans_count(told, orders):
    result = do(LakeHealthOperator, table="shop.orders")
    assert told.numbers() == {"health_score": result["report"]["score"]}
    told.clear()
    do(LakeRemoveOrphansOperator, table="shop.orders", older_than="2 d")
    assert told.numbers() == {"skipped": 1}
    told.clear()
    report = do(LakeMaintainOperator, table="shop.orders")["report"]
    counted = {name: report[name] for name in ("files_in", "files_out") if report[name]}
    assert {name: number for name, number in told.numbers().items() if name != "skipped"} == counted
