"""However a real Airflow loses a task, its run ends with one snapshot and leaves no process."""

import json
import os
import shutil
import signal
from itertools import count
from pathlib import Path

import psutil
import pytest
from local_airflow import LocalAirflow

import lakeformat as lake

DAGS = Path(__file__).resolve().parent / "held_dags"
PATIENCE = 600
FAST = {
    # Airflow finds a task whose worker is lost by missing heartbeats, by default of five minutes.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    # It finds a lost scheduler in the same way.
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
}
_numbers = count()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def airflow(place):
    connection = {"conn_type": "lake", "extra": {"warehouse": str(place / "warehouse")}}
    settings = {
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        **FAST,
    }
    with LocalAirflow(place / "airflow", DAGS, settings=settings) as airflow:
        airflow.wait_for_dags("held", seconds=PATIENCE)
        yield airflow


@pytest.fixture(params=["python", "spark"])
def engine(request):
    if request.param == "spark" and not (shutil.which("java") or "JAVA_HOME" in os.environ):
        pytest.skip("needs Java 17 to 21 in JAVA_HOME or on the PATH; bin/test installs one")
    return request.param


class HeldRun:
    """A run whose task is held where it publishes."""

    def __init__(self, airflow, place, *, engine, moment):
        self.airflow, number = airflow, next(_numbers)
        self.signs = place / f"run-{number}"
        (self.signs / "rows").mkdir(parents=True)
        (self.signs / "rows" / "a.csv").write_text("id\n1\n2\n")
        self.table = f"shop.orders_{number}"
        conf = {"engine": engine, "table": self.table, "moment": moment}
        conf |= {"source": f"{self.signs}/rows/*.csv", "signs": str(self.signs)}
        self.id = airflow.trigger("held", conf)
        self.path = f"dags/held/dagRuns/{self.id}/taskInstances/land"
        airflow.wait_for("the commit", (self.signs / "here").exists, PATIENCE)
        publisher = int((self.signs / "here").read_text())
        # Airflow gives each task a process group of its own, which is led by the task.
        self.task = psutil.Process(os.getpgid(publisher))
        self.processes = [self.task, *self.task.children(recursive=True)]
        assert publisher in [process.pid for process in self.processes]

    def require_gone(self):
        def alive():
            running = [process for process in self.processes if process.is_running()]
            return [each for each in running if each.status() != psutil.STATUS_ZOMBIE]

        self.airflow.wait_for("the end of every process", lambda: not alive(), PATIENCE)

    def clear(self):
        """Clear a failed task as a user does."""
        asked = {"dry_run": False, "dag_run_id": self.id, "task_ids": ["land"]}
        self.airflow.ask("POST", "dags/held/clearTaskInstances", {**asked, "only_failed": False})

    def finish(self):
        (self.signs / "go").touch()
        self.airflow.wait_for_run("held", self.id, seconds=PATIENCE)


def time_out(airflow, run):
    """The signal of the timer of ``execution_timeout``."""
    run.task.send_signal(signal.SIGALRM)


def mark_failed(airflow, run):
    airflow.ask("PATCH", run.path, {"new_state": "failed"})


def kill_the_task(airflow, run):
    """Kill a process as the kernel does when memory is short."""
    run.task.kill()


def kill_the_worker(airflow, run):
    """The process that looks after the task, and is all that Airflow hears of it."""
    run.task.parent().kill()


def restart_the_scheduler(airflow, run):
    airflow.kill("scheduler")
    airflow.start("scheduler")


WAYS = (time_out, mark_failed, kill_the_task, kill_the_worker, restart_the_scheduler)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("end", WAYS, ids=lambda way: way.__name__)
def test_one_snapshot_and_no_process(end, moment, engine, airflow, place):
    run = HeldRun(airflow, place, engine=engine, moment=moment)

    end(airflow, run)

    run.require_gone()
    if end is mark_failed:
        run.clear()
    run.finish()
    orders = lake.open_catalog(str(place / "warehouse")).table(run.table)
    assert [snapshot.id for snapshot in orders.snapshots()] == [1]
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert airflow.ask("GET", run.path)["try_number"] == 2
    assert airflow.result("held", run.id, "land")["replayed"] == (moment == "after")
