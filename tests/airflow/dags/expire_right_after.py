"""Keeps one snapshot: for a later run, all earlier ones have expired."""

from airflow.sdk import DAG

from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator

with DAG("expire_right_after", schedule=None, params={"incoming": "."}):
    land = LakeIngestOperator(
        task_id="land", source="{{ params.incoming }}/*.csv", table="shop.orders", create=True
    )
    land >> LakeExpireSnapshotsOperator(
        task_id="expire", table="shop.orders", retain_max=1, retain_min=1
    )
