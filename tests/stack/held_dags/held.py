"""Ingests one folder; the publishing process, a task or a driver, waits for a signal."""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, get_current_context

from airflow_provider_lake.operators.ingest import LakeIngestOperator


class HeldIngestOperator(LakeIngestOperator):
    """The engine Python works in this process: here is where it has to be held."""

    def _run_here(self, request):
        from held_commit import hold_commits

        params = get_current_context()["params"]
        hold_commits(params["signs"], params["moment"])
        return super()._run_here(request)


with DAG(
    "held",
    schedule=None,
    default_args={"retries": 1, "retry_delay": timedelta(seconds=1)},
    params={
        name: Param("", type="string") for name in ("engine", "table", "source", "signs", "moment")
    },
):
    HeldIngestOperator(
        task_id="land",
        table="{{ params.table }}",
        source="{{ params.source }}",
        create=True,
        engine="{{ params.engine }}",
        application=str(Path(__file__).with_name("held_driver.py")),
        env_vars={"TEST_SIGNS": "{{ params.signs }}", "TEST_MOMENT": "{{ params.moment }}"},
        # Long enough for any machine; a test sends the signal that its end would send.
        execution_timeout=timedelta(hours=1),
    )
