"""The connections of the compose file are such that the hook takes them, and its bucket is made."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from airflow.sdk import Connection

import lakeformat as lake
from airflow_provider_lake.hooks.connection import read_connection
from tests.conformance.s3_server import running_s3_server

DOCKER = Path(__file__).resolve().parents[2] / "docker"


def environment_of(service):
    """Return a service's environment, with the names of secrets in place of secrets."""
    told = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"][service]["environment"]
    return {name: re.sub(r"\$\{(\w+)[^}]*\}", r"\1", value) for name, value in told.items()}


def test_the_lake_of_the_compose_file_is_a_bucket_of_its_store():
    environment = environment_of("scheduler")
    extra = json.dumps(json.loads(environment["AIRFLOW_CONN_LAKE_DEFAULT"])["extra"])

    lake = read_connection(Connection(conn_id="lake_default", conn_type="lake", extra=extra))

    assert lake.warehouse == "s3://lake/warehouse"
    assert {*lake.options} == {"s3.endpoint", "s3.access-key", "s3.secret-key"}
    assert json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"])["conn_type"] == "spark"


def test_the_bucket_is_made_once_and_holds_tables():
    with running_s3_server() as endpoint:
        told = environment_of("bucket")["AIRFLOW_CONN_LAKE_DEFAULT"]
        told = told.replace("http://store:9000", endpoint)
        for _start in ("up", "up again"):
            subprocess.run(
                [sys.executable, DOCKER / "make_bucket.py"],
                env={**os.environ, "AIRFLOW_CONN_LAKE_DEFAULT": told},
                check=True,
            )

        extra = json.loads(told)["extra"]
        catalog = lake.open_catalog(extra["warehouse"], options=extra["options"])
        catalog.create_database("shop")
        assert catalog.list_databases() == ["shop"]


def made_env(folder, path):
    script = shutil.copy(DOCKER / "make_env.sh", folder)
    return subprocess.run(["/bin/sh", script], env={"PATH": path}, capture_output=True, check=False)


def test_secrets_are_fresh_and_for_their_owner_alone(tmp_path):
    assert made_env(tmp_path, os.environ["PATH"]).returncode == 0

    env = tmp_path / ".env"
    secrets = [line.partition("=")[2] for line in env.read_text().splitlines()]
    assert len({*secrets}) == 6
    assert min(map(len, secrets)) >= 16
    assert env.stat().st_mode & 0o077 == 0
    assert made_env(tmp_path, os.environ["PATH"]).returncode == 2  # it would lock the data out


def test_without_python_no_file_of_empty_secrets_is_left(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("cat", "dirname", "readlink"):
        (tools / tool).symlink_to(shutil.which(tool))

    assert made_env(tmp_path, str(tools)).returncode != 0
    assert not (tmp_path / ".env").exists()
