"""A task that works in its own process ends when it is asked to, and not only when it is killed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPERATOR = "tests.airflow.slow_work.NeverEndingOperator"
PATIENCE_SECONDS = 300


@pytest.fixture
def at_work(tmp_path, warehouse, monkeypatch):
    """A worker whose task is at work."""
    monkeypatch.setenv("TEST_HERE", str(tmp_path / "here"))
    arguments = json.dumps({"table": "shop.orders", "engine": "python"})
    words = [sys.executable, "-m", "tests.airflow.worker", OPERATOR, arguments]
    worker = subprocess.Popen(words, cwd=HERE.parents[1], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + PATIENCE_SECONDS
    while not (tmp_path / "here").exists():
        assert worker.poll() is None, worker.stderr.read()
        assert time.monotonic() < end, "the task never came to its work"
        time.sleep(0.05)
    yield worker
    worker.kill()
    worker.wait()
    worker.stderr.close()


@pytest.mark.parametrize(
    ("how", "why"), [(signal.SIGALRM, "AirflowTaskTimeout"), (signal.SIGTERM, "LakeTaskKilled")]
)
def test_it_stops_at_once(at_work, how, why):
    at_work.send_signal(how)

    _, said = at_work.communicate(timeout=PATIENCE_SECONDS)

    assert at_work.returncode == 1
    assert why in said
