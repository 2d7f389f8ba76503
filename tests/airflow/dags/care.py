"""Tasks that care for ``shop.orders`` or its database, each in a DAG of its own."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_lake.maintenance.task_group import LakeMaintenanceTaskGroup
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

STEPS = {
    "steps": {
        "compact": {"strategy": "minor"},
        "expire_snapshots": {"older_than": "1 s", "retain_min": 1},
        "remove_orphans": {"dry_run": False},
        "analyze": True,
    },
    # An Iceberg table lacks these: the first task is the gate of a compaction, or a step.
    "gate": {
        "compact": {"idle": "1 h"},
        "expire_snapshots": {"retain_max": 5, "limit": 1},
        "analyze": True,
    },
    "step": {"expire_partitions": {"expiration_time": "1 d"}, "analyze": True},
}

for name, steps in STEPS.items():
    with DAG(f"care_iceberg_{name}", schedule=None, start_date=datetime(2024, 1, 1)) as dag:
        LakeMaintenanceTaskGroup(table="shop.orders", steps=steps)
    globals()[dag.dag_id] = dag
