# SPDX-License-Identifier: Apache-2.0
"""Compacts a table after a commit by any engine.

Prerequisites: a triggerer runs, and the connection ``lake_default`` names the warehouse. Change
``TABLE`` here. The table need not exist yet.

The idea: the watcher turns every commit of Flink, Spark or Airflow into an asset event. It ignores
compactions, which change no rows, so the DAG does not start itself. If the table needs no
compaction yet, the task reads only metadata and is skipped.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, AssetWatcher

from airflow_provider_lake.assets.uri import lake_asset
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.triggers.snapshot_event import LakeSnapshotEventTrigger

TABLE = "shop.orders"
COMMITS = AssetWatcher("commits_to_orders", LakeSnapshotEventTrigger(table=TABLE, poll_interval=30))

with DAG(
    dag_id="compact_on_commit",
    schedule=[lake_asset(TABLE, watchers=[COMMITS])],
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    doc_md=__doc__,
    tags=["lake"],
):
    LakeCompactOperator(task_id="compact_if_due", table=TABLE, strategy="minor", skip_if_noop=True)
