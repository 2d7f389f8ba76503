"""The connections of the compose file are such that the hook takes them."""

import json
import re
from pathlib import Path

import yaml
from airflow.sdk import Connection

from airflow_provider_lake.connection import read_connection

COMPOSE = Path(__file__).resolve().parents[2] / "docker" / "compose.yaml"


def test_the_lake_of_the_compose_file_is_a_bucket_of_its_store():
    environment = yaml.safe_load(COMPOSE.read_text())["services"]["scheduler"]["environment"]
    filled = re.sub(r"\$\{(\w+)[^}]*\}", r"\1", environment["AIRFLOW_CONN_LAKE_DEFAULT"])
    extra = json.dumps(json.loads(filled)["extra"])

    lake = read_connection(Connection(conn_id="lake_default", conn_type="lake", extra=extra))

    assert lake.warehouse == "s3://lake/warehouse"
    assert {*lake.options} == {"s3.endpoint", "s3.access-key", "s3.secret-key"}
    assert json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])["conn_type"] == "spark"
