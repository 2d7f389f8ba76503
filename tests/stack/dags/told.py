"""A task with the table's asset as an outlet: the asset without the watcher that `watched` has."""

from airflow.sdk import DAG, task

from airflow_provider_lake.assets.uri import lake_asset

with DAG("told", schedule=None):

    @task(outlets=[lake_asset("shop.orders")])
    def write() -> None:
        """A DAG without a schedule."""

    write()
