"""An Airflow of this run's own: its settings are made before anything imports it."""

import json
import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DAGS = HERE.parents[1] / "dags"
TEST_DAGS = HERE / "dags"

_BUNDLES = [
    {
        "name": name,
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(path)},
    }
    for name, path in {"templates": DAGS, "tests": TEST_DAGS}.items()
]
os.environ |= {
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(_BUNDLES),
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
}


def pytest_collection_modifyitems(items):
    """Airflow's in-process API server imports a test client that wants a newer httpx."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette.testclient`")
            )


@pytest.fixture(scope="session")
def airflow_db():
    """The metadata database, in the home of this run."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def connect(monkeypatch):
    """Define a connection the way people do: in the environment."""

    def define(conn_id, **fields):
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    return define


@pytest.fixture
def warehouse(tmp_path, connect):
    """The warehouse of the default connection."""
    path = str(tmp_path / "warehouse")
    connect("lake_default", conn_type="lake", extra={"warehouse": path})
    return path
