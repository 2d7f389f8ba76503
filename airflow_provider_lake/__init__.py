"""Lake tables in Airflow: importing this loads neither Spark nor the data libraries."""
