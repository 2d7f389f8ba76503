"""Tells of the table by itself, and so names its asset without the watcher that `watched` has."""

from airflow.sdk import DAG, task

from airflow_provider_lake.assets.uri import lake_asset

with DAG("told", schedule=None):

    @task(outlets=[lake_asset("shop.orders")])
    def write() -> None:
        """Nobody starts it."""

    write()
