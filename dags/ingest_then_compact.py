# SPDX-License-Identifier: Apache-2.0
"""Stages the files of several shops in parallel, publishes all in one commit, and compacts.

Prerequisites: files such as ``incoming/berlin/2024-01-31/part-1.csv``, one folder for each shop,
where the workers can read them. Their column ``dt`` is the day, the partition of the table. Change
``SHOPS`` here, and ``incoming`` here or when triggering. The connection ``lake_default`` names the
warehouse; without it, tables are in ``./warehouse``.

The idea: writing files is slow, publishing them is fast. A task for each shop stages its files. The
connection ``lake_default`` decides if the tasks use Spark. Readers see no staged file until
``publish`` commits all of them in one snapshot. A retry of any task publishes nothing twice. If you
correct a file, clear the run: the new rows replace the old ones. This is possible even after a
compaction: each day is a partition, and a compaction never merges files of two partitions. The
asset event names the new snapshots, for other DAGs.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.compat import CronDataIntervalTimetable
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator

TABLE = "shop.orders_by_day"
SHOPS = ["berlin", "paris"]
# A list of task ids gives a list of results, also for one shop.
STAGED = "{{ ti.xcom_pull(task_ids=['stage_shop']) | map(attribute='staged') | list | tojson }}"

with DAG(
    dag_id="ingest_then_compact",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    params={
        "incoming": Param(
            "incoming", type="string", description="A folder with one folder per shop in it"
        )
    },
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    doc_md=__doc__,
    tags=["lake"],
):
    stage = LakeIngestOperator.partial(
        task_id="stage_shop", table=TABLE, create=True, partition_by=["dt"], stage=True
    ).expand(
        source=[
            "{{ params.incoming }}/" + shop + "/{{ data_interval_start | ds }}/*" for shop in SHOPS
        ]
    )
    publish = LakeCommitOperator(
        task_id="publish", table=TABLE, staged=STAGED, outlets=[lake_asset(TABLE)]
    )
    compact = LakeCompactOperator(task_id="compact", table=TABLE, strategy="minor")
    stage >> publish >> compact
