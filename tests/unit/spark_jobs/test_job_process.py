"""Ends of a job's process from outside: by a signal, or because its parent has died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# A job that never ends by itself, and cleans up.
JOB = """
import functools, sys, threading
import spark_jobs.runtime.command as command
from spark_jobs.health import JOB

def run(request):
    try:
        print("at work", flush=True)
        threading.Event().wait()
    finally:
        print("cleaned up", flush=True)

def run_stuck(request):
    try:
        print("at work", flush=True)
        threading.Event().wait()
    finally:
        threading.Event().wait()

command.watch_parent = functools.partial(
    command.watch_parent, look_seconds=0.01, grace_seconds=float(sys.argv[2])
)
request = '{"warehouse": "warehouse", "table": "shop.orders"}'
sys.exit(command.run_command(JOB, globals()[sys.argv[1]], ["--request", request, *sys.argv[3:]]))
"""

# Adopts its grandchild when the child dies, which is what init does, and tells how it ended.
ADOPTS = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)
child = subprocess.Popen([sys.executable, "-c", '''
import subprocess, sys
job = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE)
print(job.pid, job.stdout.readline().decode(), flush=True)
sys.stdin.read()
''', *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
job = int(child.stdout.readline().split()[0])
child.kill()
child.wait()
_, status = os.waitpid(job, 0)
print(os.waitstatus_to_exitcode(status))
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def test_sigterm_ends_a_job_after_its_clean_up():
    words = [sys.executable, "-c", JOB, "run", "60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as job:
        assert job.stdout.readline() == "at work\n"
        job.send_signal(signal.SIGTERM)
        said, _ = job.communicate(timeout=60)
    assert (said, job.returncode) == ("cleaned up\n", 143)


@pytest.mark.skipif(sys.platform != "linux", reason="adopting processes is a thing of Linux")
@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["run", "60", "--watch-parent"], {}),
        (["run", "60"], {"LAKE_WATCH_PARENT": "1"}),
        (["run_stuck", "0.1", "--watch-parent"], {}),
    ],
    ids=["asked by an argument", "asked by the environment", "stuck in its clean-up"],
)
def test_a_job_whose_parent_was_killed_ends(words, more):
    done = subprocess.run(
        [sys.executable, "-c", ADOPTS, JOB, *words],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.strip() == "143", done.stderr
