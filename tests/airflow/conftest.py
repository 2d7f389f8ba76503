"""An Airflow of this run's own: its settings are made before anything imports it."""

import base64
import json
import os
from functools import cache
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
    # Processes that tests start read what this one has stored.
    "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(os.urandom(32)).decode(),
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(_BUNDLES),
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
}


def pytest_collection_modifyitems(items):
    """Begin with the longest tests, so that no process waits for them at the end.

    Airflow's in-process API server imports a test client that wants a newer httpx.
    """
    items.sort(key=lambda item: item.path != HERE / "spark" / "test_spark_kill.py")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette.testclient`")
            )


@pytest.fixture(scope="session")
def airflow_db():
    """The metadata database, in the home of this run. It gets the DAGs of a folder once.

    Each run of a DAG would parse and store all DAGs of its folder again.
    """
    from airflow.utils.db import initdb

    from tests.airflow.versions import AIRFLOW

    initdb()
    with pytest.MonkeyPatch.context() as patch:
        if AIRFLOW.release >= (3, 3):
            from airflow.dag_processing import dagbag

            for name in ("BundleDagBag", "sync_bag_to_db"):
                patch.setattr(dagbag, name, cache(getattr(dagbag, name)))
        yield


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


@pytest.fixture
def catalog(warehouse):
    """The catalog of that warehouse, with the database ``shop``."""
    import lakeformat as lake

    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog):
    """An empty table; a module whose tests want another one has a fixture of its own."""
    return catalog.create_table("shop.orders", [("id", "BIGINT"), ("item", "STRING")])


@pytest.fixture(scope="module")
def server(airflow_db):
    """Airflow's API server, with the plugin it has found."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "of this run alone " * 4)
        with TestClient(create_app(apps="core"), follow_redirects=False) as client:
            yield client


@pytest.fixture
def ask(server):
    """Request a page as a user with a role, "" for none; None is an anonymous request."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    from tests.airflow.versions import AIRFLOW

    def send(address, role="op", teams=(), method="GET", **more):
        headers = {}
        if role is not None:
            of_teams = {"teams": [*teams]} if AIRFLOW.release >= (3, 2) else {}
            someone = SimpleAuthManagerUser(username="someone", role=role or None, **of_teams)
            headers["Authorization"] = f"Bearer {get_auth_manager().generate_jwt(someone)}"
        return server.request(method, address, headers=headers, **more)

    return send


@pytest.fixture
def said(monkeypatch):
    """Return the XComs of a task, pushed without running it."""
    pushed = {}
    monkeypatch.setattr(
        "airflow_provider_lake.page.task.xcom_of", lambda _, key: pushed.get(key, {})
    )
    return pushed


@pytest.fixture
def told():
    """Return the metrics sent to the backend of this process."""
    from tests.airflow.kept_metrics import Kept, backend

    kept = Kept()
    backend(kept)
    yield kept
    backend(None)
