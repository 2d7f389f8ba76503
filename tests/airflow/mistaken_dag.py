"""A DAG with mistakes, for mypy; above each of them stands what mypy answers. It never runs."""

# ruff: noqa: E501

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.decorators.lake_commit import lake_commit_task
from airflow_provider_lake.decorators.lake_job import lake_job_task
from airflow_provider_lake.maintenance.dags import lake_dags
from airflow_provider_lake.maintenance.task_group import LakeMaintenanceTaskGroup
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.sensors.partition import LakePartitionSensor
from airflow_provider_lake.sensors.watermark import LakeWatermarkSensor

with DAG("right", schedule="@daily"):
    wait = LakePartitionSensor(
        task_id="wait",
        table="shop.raw",
        partition={"dt": "{{ ds }}"},
        poke_interval=60,
        timeout=timedelta(hours=6),
        deferrable=True,
    )
    land = LakeIngestOperator(
        task_id="land",
        table="shop.orders",
        source="incoming/{{ ds }}/*.csv",
        stage=True,
        retries=3,
        pool="lake",
    )
    publish = LakeCommitOperator(
        task_id="publish",
        table="shop.orders",
        staged=[land.output["staged"]],
        outlets=[lake_asset("shop.orders")],
    )
    tidy = LakeCompactOperator(
        task_id="tidy", table="shop.orders", engine="spark", conf={"spark.cores.max": 2}
    )

    @lake_commit_task(table="shop.prices", create=True, primary_key=["item"], retries=2)
    def prices(day: str) -> list[dict[str, Any]]:
        """Return the rows of one day."""
        return [{"item": "apple", "price": 5, "day": day}]

    @lake_job_task(table="shop.prices")
    def count(table: Any) -> int:
        """Return the number of rows."""
        return int(table.scan().count())

    wait >> land >> publish >> tidy >> [prices("{{ ds }}"), count()]

with DAG("mistaken"):
    # error: Unexpected keyword argument "stratgy" for "LakeCompactOperator"; did you mean "strategy"?
    LakeCompactOperator(task_id="a", table="shop.a", stratgy="full")
    # error: Argument "strategy" to "LakeCompactOperator" has incompatible type "Literal['most']"; expected "Literal['full', 'minor', 'sort', 'zorder']"
    LakeCompactOperator(task_id="b", table="shop.a", strategy="most")
    # error: Missing named argument "table" for "LakeCompactOperator"
    LakeCompactOperator(task_id="c")
    # error: Argument "table" to "LakeCompactOperator" has incompatible type "int"; expected "str"
    LakeCompactOperator(task_id="d", table=1)
    # error: Unexpected keyword argument "retires" for "LakeCompactOperator"; did you mean "retries"?
    LakeCompactOperator(task_id="e", table="shop.a", retires=3)
    # error: Argument "conf" to "LakeCompactOperator" has incompatible type "str"; expected "Mapping[str, Any] | None"
    LakeCompactOperator(task_id="f", table="shop.a", conf="spark.cores.max=2")
    # error: Argument "engine" to "LakeCompactOperator" has incompatible type "Literal['flink']"; expected "Literal['auto', 'python', 'spark']"
    LakeCompactOperator(task_id="g", table="shop.a", engine="flink")
    # error: Unexpected keyword argument "poke_intervall" for "LakeWatermarkSensor"; did you mean "poke_interval"?
    LakeWatermarkSensor(task_id="h", table="shop.a", watermark="2024", poke_intervall=3)
    # error: Unexpected keyword argument "creat" for "lake_commit_task"; did you mean "create"?
    lake_commit_task(table="shop.a", creat=True)
    # error: Argument "retries" to "lake_job_task" has incompatible type "str"; expected "int | None"
    lake_job_task(table="shop.a", retries="x")
    # error: Unexpected keyword argument "tooltp" for "LakeMaintenanceTaskGroup"; did you mean "tooltip"?
    LakeMaintenanceTaskGroup(table="shop.a", steps={}, tooltp="")

# error: Unexpected keyword argument "tag" for "lake_dags"; did you mean "tags"?
lake_dags("lake.yaml", tag=["nightly"])
