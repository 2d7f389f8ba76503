"""Tasks that care for ``shop.orders`` or its database, each in a DAG of its own."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.operators.maintain import LakeMaintainOperator

SUBJECT = {"table": "shop.orders"}
TASKS = {
    "compact": (LakeCompactOperator, SUBJECT),
    "compact_dry": (LakeCompactOperator, {**SUBJECT, "dry_run": True}),
    "maintain": (LakeMaintainOperator, SUBJECT),
    "maintain_dry": (LakeMaintainOperator, {**SUBJECT, "dry_run": True}),
    "maintain_database": (LakeMaintainOperator, {"database": "shop"}),
}

for name, (operator, arguments) in TASKS.items():
    with DAG(f"care_{name}", schedule=None, start_date=datetime(2024, 1, 1)) as dag:
        operator(task_id="care", **arguments)
    globals()[dag.dag_id] = dag
