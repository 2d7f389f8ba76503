"""Ending a process ends what it started, and nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from airflow_provider_lake.spark import launch
from airflow_provider_lake.spark.process_tree import ProcessTree

PATIENCE_SECONDS = 60
# A process, and the one it starts; the second prints "up" and may ignore SIGTERM.
FAMILY = """
import signal, subprocess, sys, time
child = 'import signal, time; {deaf}print("up", flush=True); time.sleep(600)'
subprocess.Popen([sys.executable, "-c", child])
time.sleep(600)
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "


def start_family(deaf=""):
    root = subprocess.Popen(
        [sys.executable, "-c", FAMILY.format(deaf=deaf)], stdout=subprocess.PIPE, text=True
    )
    assert root.stdout.readline() == "up\n"
    return root, psutil.Process(root.pid).children(recursive=True)


@pytest.mark.parametrize(("deaf", "grace"), [("", PATIENCE_SECONDS), (DEAF, 0.2)])
def test_everything_ends_even_what_does_not_want_to(deaf, grace):
    root, children = start_family(deaf)
    assert len(children) == 1

    tree = ProcessTree(root)
    assert not tree.is_gone
    tree.terminate(grace)

    assert tree.is_gone
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []
    assert root.wait(PATIENCE_SECONDS) == -signal.SIGTERM  # nobody took the exit code away
    root.stdout.close()


def test_a_process_that_has_ended_is_no_problem():
    root = subprocess.Popen([sys.executable, "-c", ""])
    root.wait(PATIENCE_SECONDS)

    ended, absent = ProcessTree(root), ProcessTree(None)
    ended.terminate(0.1)
    absent.terminate(0.1)

    assert ended.is_gone
    assert absent.is_gone


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent")
def test_a_launched_command_dies_with_its_parent(tmp_path):
    """The parent is killed, so it cannot stop its children."""
    command = (
        "import os, pathlib, time; "
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); "
        "print('up', flush=True); time.sleep(600)"
    )
    code = (
        "import os, subprocess, sys\n"
        f"launch = [sys.executable, '-I', '-S', {launch.__file__!r}, str(os.getpid())]\n"
        f"subprocess.run([*launch, sys.executable, '-c', {command!r}])\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "up\n"
    launched = psutil.Process(int((tmp_path / "pid").read_text()))

    parent.kill()

    assert psutil.wait_procs([launched], timeout=PATIENCE_SECONDS)[1] == []
    parent.wait()
    parent.stdout.close()


def test_a_command_whose_parent_is_gone_already_is_not_started(tmp_path):
    touched = tmp_path / "touched"
    words = [sys.executable, "-I", "-S", launch.__file__, "1", "touch", str(touched)]

    assert subprocess.run(words, check=False).returncode == 143
    assert not touched.exists()


def test_a_command_that_is_not_there_is_named():
    words = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), "/no/such/command"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr == "cannot start /no/such/command: No such file or directory\n"


def test_the_launcher_loads_the_standard_library_alone():
    assert "airflow" not in Path(launch.__file__).read_text().replace("airflow_provider_lake", "")
