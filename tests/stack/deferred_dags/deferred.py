"""Ingests one folder without a worker; the publishing process waits for a signal."""

import sys
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, get_current_context

from airflow_provider_lake.operators.ingest import LakeIngestOperator

DRIVER = Path(__file__).parents[1] / "held_dags" / "held_driver.py"


class HeldIngestOperator(LakeIngestOperator):
    """The process of the engine Python is held where it publishes."""

    def _program(self):
        params = get_current_context()["params"]
        signs = f"TEST_SIGNS={params['signs']}"
        return ["env", signs, "TEST_MOMENT=before", sys.executable, str(DRIVER)]


with DAG(
    "deferred",
    schedule=None,
    default_args={"retries": 1, "retry_delay": timedelta(seconds=1)},
    params={name: Param("", type="string") for name in ("engine", "table", "source", "signs")},
):
    HeldIngestOperator(
        task_id="land",
        table="{{ params.table }}",
        source="{{ params.source }}",
        create=True,
        engine="{{ params.engine }}",
        application=str(DRIVER),
        env_vars={"TEST_SIGNS": "{{ params.signs }}", "TEST_MOMENT": "before"},
        deferrable=True,
    )
