"""Work on lake tables as Airflow tasks."""
