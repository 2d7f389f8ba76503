"""Announces the table's asset itself, so it names it without the watcher of `watched`."""

from airflow.sdk import DAG, task

from airflow_provider_lake.assets.uri import lake_asset

with DAG("told", schedule=None):

    @task(outlets=[lake_asset("shop.orders")])
    def write() -> None:
        """A DAG without a schedule."""

    write()
