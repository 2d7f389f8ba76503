"""The baseline in a file of its own: its task imports nothing that is not Airflow's."""

from airflow.sdk import DAG, task

with DAG("empty", schedule=None):

    @task
    def work() -> None:
        """Do nothing."""

    work()
