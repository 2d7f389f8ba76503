"""The dedicated compaction of a table that Flink writes, without a Flink job for it.

Prerequisites: a table that Flink (or anybody) writes with ``write-only`` set to ``true``, so that
its writers leave compaction to this DAG; a triggerer runs. The connection ``lake_default`` names
the warehouse, which Flink and Airflow both reach. Change ``TABLE`` here. For large tables give
``engine="spark"``, and a Spark connection.

The one idea: the DAG runs all the time and works only when something is due. The sensor waits in
the triggerer, where it holds no worker; the compaction commits bucket by bucket beside the
running Flink job, and what Flink overtakes is planned again. One compaction of a table at a time.
A storage that does not answer is waited for; after ten failed runs in a row the DAG is paused.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.sensors.compaction import LakeCompactionNeededSensor

TABLE = "shop.orders"

with DAG(
    dag_id="compact_flink_table",
    schedule="@continuous",
    catchup=False,
    max_active_runs=1,
    max_consecutive_failed_dag_runs=10,  # the next one begins at once
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
        soft_fail=True,  # a day without writes is no failure
        deferrable=True,
    )
    compact = LakeCompactOperator(task_id="compact", table=TABLE, strategy="minor")
    wait >> compact
