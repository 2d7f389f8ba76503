"""The Airflow of the demo shows the results that tasks returned."""

import importlib
from pathlib import Path

import pytest

from tests.airflow.conftest import TEST_DAGS
from tests.airflow.dags.results import VALUES
from tests.airflow.test_dags import MIDNIGHT, load

BIN = Path(__file__).resolve().parents[2] / "bin"


@pytest.fixture
def local_airflow(ask, tmp_path, monkeypatch):
    """One that asks the API server of these tests."""
    monkeypatch.syspath_prepend(BIN)
    module = importlib.import_module("local_airflow")

    class Asking(module.LocalAirflow):
        def _get(self, path):
            answer = ask(f"/api/v2/{path}", role="admin")
            return None if answer.status_code == 404 else answer.json()

    return Asking(tmp_path / "home", TEST_DAGS, settings={})


def test_a_result_is_what_the_task_returned_whatever_it_is(local_airflow):
    run = load(TEST_DAGS)["results"].test(logical_date=MIDNIGHT, run_after=MIDNIGHT)

    found = {name: local_airflow.result("results", run.run_id, name) for name in VALUES}

    assert found == VALUES
    assert local_airflow.result("results", run.run_id, "nobody") is None
