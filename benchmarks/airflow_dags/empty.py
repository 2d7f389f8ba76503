"""The baseline: a DAG file that imports nothing but Airflow."""

from airflow.sdk import DAG, task

with DAG("empty", schedule=None):

    @task
    def work() -> None:
        """Do nothing."""

    work()
