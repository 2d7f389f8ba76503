"""bin/demo runs all its steps with a real Airflow, and leaves nothing running."""

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
HAS_JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ


@pytest.fixture
def demo(tmp_path):
    """Starts bin/demo in a folder of its own."""
    started = []

    def start(*words):
        command = [sys.executable, "-u", ROOT / "bin" / "demo.py", "--folder", tmp_path, *words]
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell that runs the tests in the background has switched Ctrl-C off for them.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate()


def left_behind(folder):
    """Return processes that know the folder from their arguments or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            said = " ".join([*process.cmdline(), *process.environ().values()])
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if str(folder) in said:
            found.append(process)
    return found


def test_the_demo_tells_its_story_and_ends_what_it_started(demo, tmp_path):
    process = demo("--engine", "spark" if HAS_JAVA else "python", "--keep")
    said = ""
    for line in process.stdout:
        said += line
        if "until Ctrl-C" in line:
            break
    stays = re.search(r"Airflow keeps running at (\S+) until", said)
    assert stays, said
    assert f"Airflow reads DAGs from {tmp_path / 'dags'}" in said
    assert f"{stays[1]}/plugin/lake/lake/table/lake_default?name=shop.web_orders" in said
    assert (tmp_path / "dags" / "demo_orders.py").exists()
    assert b"<html" in urllib.request.urlopen(stays[1], timeout=60).read()
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=120) == 0, said
    told = said.partition("Round 2")[2]
    orders, revenue = told.split("the revenue")
    assert re.findall(r"(\d+) +(\w+) +(\d+)\n", orders) == [
        ("1", "apple", "8"),
        ("2", "pear", "7"),
        ("3", "apple", "5"),
        ("5", "pear", "2"),
        ("6", "quince", "9"),
        ("7", "apple", "1"),
        ("8", "quince", "2"),
    ]
    assert re.findall(r"(\w+) +(\d+)\n", revenue)[:4] == [
        ("apple", "14"),
        ("pear", "9"),
        ("plum", "0"),
        ("quince", "11"),
    ]
    scores = re.findall(r"score (\d+) of 100, (\w+); (\d+) file", said)
    assert [each[1:] for each in scores[:2]] == [("degraded", "6"), ("healthy", "1")]
    assert int(scores[0][0]) < int(scores[1][0]) == 100
    assert left_behind(tmp_path) == []


def test_a_demo_that_is_terminated_at_work_ends_what_it_started(demo, tmp_path):
    process = demo("--engine", "python", "--keep")
    for line in process.stdout:
        if "run demo_orders" in line:
            break
    started = left_behind(tmp_path)

    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=120) == 128 + signal.SIGTERM
    assert len(started) > 4
    assert left_behind(tmp_path) == []
