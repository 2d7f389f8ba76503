# SPDX-License-Identifier: Apache-2.0
"""Stages one day's files, checks their rows, and publishes them only if all checks pass.

Prerequisites: files such as ``incoming/orders/2024-01-31/part-1.csv`` with the columns ``id``,
``item`` and ``price``, where the workers can read them. Change ``incoming`` when triggering, or
here. The connection ``lake_default`` names the warehouse; without it, tables are in
``./warehouse``.

The idea: no reader ever sees a bad row. If a check fails, the run stops before the commit, the log
names the check with examples of bad rows, and the staged files are deleted. Then correct the
source, and clear the run: it stages again. If a check in ``warn_only`` fails, the log has a
warning, and the rows are published.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from airflow_provider_lake.compat import CronDataIntervalTimetable
from airflow_provider_lake.operators.check import LakeCheckOperator
from airflow_provider_lake.operators.commit import LakeCommitOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator

TABLE = "shop.checked_orders"

with DAG(
    dag_id="ingest_checked",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    params={
        "incoming": Param(
            "incoming/orders", type="string", description="A folder with one folder per day in it"
        )
    },
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    doc_md=__doc__,
    tags=["lake"],
):
    stage = LakeIngestOperator(
        task_id="stage",
        source="{{ params.incoming }}/{{ data_interval_start | ds }}/*",
        table=TABLE,
        create=True,
        stage=True,
    )
    check = LakeCheckOperator(
        task_id="check",
        table=TABLE,
        staged=[stage.output["staged"]],
        min_rows=1,
        not_null=["id", "item"],
        unique=["id"],
        accepted_values={"item": ["tea", "milk"]},
        conditions=["price >= 0"],
        warn_only=["accepted_values"],
        discard_failed=True,
    )
    LakeCommitOperator(task_id="publish", table=TABLE, staged=check.output["staged"])
