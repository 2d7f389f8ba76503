# SPDX-License-Identifier: Apache-2.0
"""Adds one day's files to a lake table, once, however often the task runs.

Prerequisites: files such as ``incoming/orders/2024-01-31/part-1.csv`` (or Parquet, or JSON
lines), where the worker can read them; each day's folder is complete when the next day begins.
Change ``incoming`` when triggering, or here. The connection ``lake_default`` names the
warehouse; without it, tables are in ``./warehouse``.

The idea: the commit has the identity of this DAG run. A retry, or a worker that Airflow believed
dead, finds the snapshot of its run and publishes nothing twice. If you correct a file later,
clear the task of that day's run: the new rows replace the earlier rows of this run.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_provider_lake.compat import CronDataIntervalTimetable
from airflow_provider_lake.operators.ingest import LakeIngestOperator

with DAG(
    dag_id="ingest_orders",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    catchup=False,
    params={
        "incoming": Param(
            "incoming/orders", type="string", description="A folder with one folder per day in it"
        )
    },
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    doc_md=__doc__,
    tags=["lake"],
):
    LakeIngestOperator(
        task_id="land_orders",
        source="{{ params.incoming }}/{{ data_interval_start | ds }}/*",
        table="shop.orders",
        create=True,
    )
