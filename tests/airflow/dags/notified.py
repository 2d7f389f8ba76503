"""A task whose failure people are notified of."""

from airflow.sdk import DAG

from airflow_provider_lake.notifications.health import LakeHealthNotifier
from airflow_provider_lake.operators.check import LakeCheckOperator
from tests.airflow.chat import Chat

with DAG("notified", schedule=None):
    LakeCheckOperator(
        task_id="check",
        table="shop.orders",
        unique=["id"],
        on_failure_callback=LakeHealthNotifier(notifier=Chat()),
    )
