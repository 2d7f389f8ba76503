# SPDX-License-Identifier: Apache-2.0
"""Compacts the tables of a database that need it, a few at a time, and expires old snapshots.

Prerequisites: a database ``shop`` in the warehouse of the connection ``lake_default``. Change
``DATABASE`` and the limits here. To limit the work of all DAGs on the lake, create a pool
(``airflow pools set lake 4 "work on the lake"``) and set ``POOL`` to its name.

The idea: the tables are looked up when the DAG runs, not when it is parsed. Only tables with at
least ``MIN_FILES`` files to compact get a compaction task, those with the most files first. The
search for these tables is a single task, which reads only metadata. Every table gets a task that
expires its snapshots.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, task

from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator

DATABASE = "shop"
POOL = "default_pool"
MIN_FILES = 5
BYTES_A_RUN = 50 * 2**30

with DAG(
    dag_id="maintain_tables",
    schedule="@hourly",
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5), "pool": POOL},
    doc_md=__doc__,
    tags=["lake"],
):

    @task
    def find_due_tables() -> list[dict[str, object]]:
        """Return the arguments of a compaction for each table that is due."""
        from airflow_provider_lake.maintenance.gate import due_tables

        return due_tables(DATABASE, min_files=MIN_FILES, max_bytes=BYTES_A_RUN)

    @task
    def list_tables() -> list[str]:
        """Return every table of the database."""
        from airflow_provider_lake.hooks.lake import LakeHook

        return [f"{DATABASE}.{name}" for name in LakeHook().get_conn().list_tables(DATABASE)]

    # Neither waits for the other: a table that cannot be compacted does not stop any expiry.
    LakeCompactOperator.partial(
        task_id="compact", max_active_tis_per_dagrun=2, map_index_template="{{ task.table }}"
    ).expand_kwargs(find_due_tables())
    LakeExpireSnapshotsOperator.partial(
        task_id="expire_snapshots",
        older_than="7 d",
        map_index_template="{{ task.table }}",
    ).expand(table=list_tables())
