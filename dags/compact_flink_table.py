# SPDX-License-Identifier: Apache-2.0
"""Compacts a table that Flink writes, without a dedicated Flink compaction job.

Prerequisites: a table that Flink (or any engine) writes with ``write-only`` set to ``true``, so
that its writers leave compaction to this DAG; a triggerer runs. The connection ``lake_default``
names the warehouse, which Flink and Airflow both reach. Change ``TABLE`` here. For large tables
set ``engine="spark"`` and a Spark connection.

The idea: when a run of the DAG ends, Airflow starts the next run at once. In each run the sensor
waits until a compaction is due. It waits in the triggerer, without using a worker. The compaction
commits buckets in groups while the Flink job runs; if Flink changes a bucket meanwhile, the bucket
is planned again. Only one compaction of a table runs at a time. While the storage does not answer,
the sensor waits. After ten failed runs in a row the DAG is paused.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.sensors.compaction import LakeCompactionNeededSensor

TABLE = "shop.orders"

with DAG(
    dag_id="compact_flink_table",
    schedule="@continuous",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),  # without one it would run only once
    catchup=False,
    max_active_runs=1,
    max_consecutive_failed_dag_runs=10,  # the next run starts at once
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
    doc_md=__doc__,
    tags=["lake"],
):
    wait = LakeCompactionNeededSensor(
        task_id="wait_until_due",
        table=TABLE,
        min_files=5,
        poke_interval=60,
        timeout=timedelta(days=1),
        soft_fail=True,  # a day without writes is not a failure
        deferrable=True,
    )
    compact = LakeCompactOperator(task_id="compact", table=TABLE, strategy="minor")
    wait >> compact
