"""A task that ends leaves no process behind, however it ends; its retry commits once.

Real processes: a worker, the launcher of Spark with its JVM, and the driver.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import lakeformat as lake

HERE = Path(__file__).parents[1]
OPERATOR = "airflow_provider_lake.operators.ingest.LakeIngestOperator"
PATIENCE_SECONDS = 600
STORY = pytest.mark.sampled(1, among="tasks with a real Spark")


@pytest.fixture(autouse=True)
def _needs_spark(quick_java):
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("needs Java 17 to 21 in JAVA_HOME or on the PATH; bin/test installs one")


@pytest.fixture
def land(tmp_path, warehouse, connect):
    """Starts a worker whose task ingests one file on Spark."""
    connect("spark_here", conn_type="spark", host="local[1]")
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    signs = {"TEST_GO": str(tmp_path / "go"), "TEST_HERE": str(tmp_path / "here")}
    arguments = {
        "table": "shop.orders",
        "source": str(tmp_path / "a.csv"),
        "create": True,
        "engine": "spark",
        "spark_conn_id": "spark_here",
        "application": str(HERE / "slow_driver.py"),
        "env_vars": signs,
    }
    started = []

    def start():
        words = [sys.executable, str(HERE / "worker.py"), OPERATOR, json.dumps(arguments)]
        worker = subprocess.Popen(
            words, cwd=HERE.parents[1], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
        worker.communicate()


def processes_at_the_commit(worker, tmp_path):
    """Every process of a worker whose driver has written its rows and waits to commit."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (tmp_path / "here").exists():
        assert worker.poll() is None, worker.stdout.read()
        assert time.monotonic() < end, "the driver never came to its commit"
        time.sleep(0.1)
    driver = psutil.Process(int((tmp_path / "here").read_text()))
    assert driver.parent().name() == "java"
    return [driver, *psutil.Process(worker.pid).children(recursive=True)]


def require_gone(processes):
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)
    assert alive == []


@STORY
@pytest.mark.parametrize(
    "how", [signal.SIGALRM, signal.SIGTERM, signal.SIGKILL], ids=["timeout", "failed", "lost"]
)
def test_nothing_is_left_of_a_task_that_was_ended(how, land, tmp_path, warehouse):
    worker = land()
    started = processes_at_the_commit(worker, tmp_path)

    worker.send_signal(how)

    require_gone(started)
    said, _ = worker.communicate(timeout=PATIENCE_SECONDS)
    assert worker.returncode != 0
    assert "RESULT" not in said
    assert lake.open_catalog(warehouse).table("shop.orders").latest_snapshot() is None


@STORY
def test_a_retry_after_a_kill_commits_exactly_once(land, tmp_path, warehouse):
    worker = land()
    started = processes_at_the_commit(worker, tmp_path)
    worker.kill()
    require_gone(started)
    (tmp_path / "go").touch()

    said, _ = land().communicate(timeout=PATIENCE_SECONDS)
    again, _ = land().communicate(timeout=PATIENCE_SECONDS)

    orders = lake.open_catalog(warehouse).table("shop.orders")
    assert [snapshot.id for snapshot in orders.snapshots()] == [1], said
    assert orders.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert '"replayed": false' in said
    assert '"replayed": true' in again
