"""In a real Airflow a deferred task holds no slot, survives its triggerer, and can be killed."""

import json
import os
import shutil
from itertools import count
from pathlib import Path

import psutil
import pytest
from local_airflow import LocalAirflow

import lakeformat as lake

DAGS = Path(__file__).resolve().parent / "deferred_dags"
PATIENCE = 600
_numbers = count()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("deferred")


@pytest.fixture(scope="module")
def airflow(place):
    connection = {"conn_type": "lake", "extra": {"warehouse": str(place / "warehouse")}}
    (place / "tmp").mkdir()
    settings = {
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
        "TMPDIR": str(place / "tmp"),
    }
    with LocalAirflow(place / "airflow", DAGS, settings=settings) as airflow:
        airflow.wait_for_dags("deferred", seconds=PATIENCE)
        yield airflow


@pytest.fixture(params=["python", "spark"])
def engine(request):
    if request.param == "spark" and not (shutil.which("java") or "JAVA_HOME" in os.environ):
        pytest.skip("needs Java 17 to 21 in JAVA_HOME or on the PATH; bin/test installs one")
    return request.param


class DeferredRun:
    """A run whose task waits without a worker for a process that is held where it publishes."""

    def __init__(self, airflow, place, engine, *, is_stubborn=False):
        self.airflow, number = airflow, next(_numbers)
        self.signs = place / f"run-{number}"
        (self.signs / "rows").mkdir(parents=True)
        (self.signs / "rows" / "a.csv").write_text("id\n1\n2\n")
        if is_stubborn:
            (self.signs / "stubborn").touch()
        self.table = f"shop.orders_{number}"
        conf = {"engine": engine, "table": self.table, "signs": str(self.signs)}
        self.id = airflow.trigger("deferred", conf | {"source": f"{self.signs}/rows/*.csv"})
        self.path = f"dags/deferred/dagRuns/{self.id}/taskInstances/land"
        self.wait_for_state("deferred")
        airflow.wait_for("the commit", (self.signs / "here").exists, PATIENCE)
        self.publisher = psutil.Process(int((self.signs / "here").read_text()))

    @property
    def state(self):
        return self.airflow.ask("GET", self.path)["state"]

    def wait_for_state(self, state):
        self.airflow.wait_for(f"state {state}", lambda: self.state == state, PATIENCE)

    def require_gone(self):
        def is_gone():
            try:
                return self.publisher.status() == psutil.STATUS_ZOMBIE
            except psutil.NoSuchProcess:
                return True

        self.airflow.wait_for("the end of the process", is_gone, PATIENCE)

    def finish(self):
        (self.signs / "go").touch()
        self.airflow.wait_for_run("deferred", self.id, seconds=PATIENCE)

    def log(self):
        found = self.airflow.ask("GET", f"{self.path}/logs/1?full_content=true")
        return json.dumps(found["content"])


def rows(place, run):
    table = lake.open_catalog(str(place / "warehouse")).table(run.table)
    assert [snapshot.id for snapshot in table.snapshots()] == [1]
    return table.scan().to_arrow()["id"].to_pylist()


def test_the_slot_is_free_while_the_process_works(engine, airflow, place):
    run = DeferredRun(airflow, place, engine)
    airflow.wait_for(
        "a free slot",
        lambda: airflow.ask("GET", "pools/default_pool")["running_slots"] == 0,
        PATIENCE,
    )
    assert run.state == "deferred"

    run.finish()

    assert rows(place, run) == [1, 2]
    assert airflow.result("deferred", run.id, "land")["replayed"] is False
    assert airflow.ask("GET", run.path)["try_number"] == 1
    assert run.log().count("result: published as snapshot 1") == 1


def test_a_triggerer_that_is_killed_is_followed_by_the_next_one(engine, airflow, place):
    run = DeferredRun(airflow, place, engine)

    airflow.kill("triggerer")
    airflow.start("triggerer")
    run.finish()

    assert rows(place, run) == [1, 2]
    assert airflow.ask("GET", run.path)["try_number"] == 1


@pytest.mark.parametrize("state", ["failed", "success"])
def test_a_task_that_is_marked_ends_its_process(state, engine, airflow, place):
    run = DeferredRun(airflow, place, engine)

    airflow.ask("PATCH", run.path, {"new_state": state})

    run.require_gone()
    table = lake.open_catalog(str(place / "warehouse")).table(run.table)
    assert table.latest_snapshot() is None


def test_a_task_that_is_cleared_begins_anew(engine, airflow, place):
    """The next attempt begins before the process of the first one has ended."""
    run = DeferredRun(airflow, place, engine, is_stubborn=True)
    asked = {"dry_run": False, "dag_run_id": run.id, "task_ids": ["land"], "only_failed": False}

    airflow.ask("POST", "dags/deferred/clearTaskInstances", asked)

    run.require_gone()
    run.finish()
    assert rows(place, run) == [1, 2]
    assert airflow.result("deferred", run.id, "land")["replayed"] is False
    assert airflow.ask("GET", run.path)["try_number"] == 2
