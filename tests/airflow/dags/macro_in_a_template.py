"""Reads the file that is named like this task's commit user."""

from airflow.sdk import DAG

from airflow_provider_lake.operators.ingest import LakeIngestOperator

with DAG("macro_in_a_template", schedule=None, params={"incoming": "."}):
    LakeIngestOperator(
        task_id="land",
        source="{{ params.incoming }}/{{ macros.lake.commit_user(ti, 'shop.orders') }}.csv",
        table="shop.orders",
        create=True,
    )
