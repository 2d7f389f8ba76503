"""Tasks that return values of every kind there is in JSON."""

from airflow.sdk import DAG, task

VALUES = {
    "text": "pear",
    "digits": "007",
    "number": 7,
    "truth": False,
    "members": {"snapshot_id": 1, "report": {"files": ["a", "b"]}},
}

with DAG("results", schedule=None):
    for name, value in VALUES.items():

        @task(task_id=name)
        def give(value):
            return value

        give(value)
