"""A run of bin/test that is ended lets the tests clean up."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.bootstrap.machine import ROOT

# Stands for pytest with a server: tells that it runs, and takes its time to stop the server.
TESTS = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "server").touch()
try:
    print("running", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    (folder / "server").unlink()
    sys.exit(2)
"""

RUN = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
import step
step.listen()
try:
    step.run_step(sys.argv[3:], folder=pathlib.Path(sys.argv[2]), environ=os.environ)
except KeyboardInterrupt as ending:
    sys.exit(type(ending).__name__)
"""


def start_run(folder: Path, **options: object) -> subprocess.Popen[str]:
    """A run with one step, which is at work when this returns."""
    tests = [sys.executable, "-c", TESTS, str(folder)]
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(ROOT / "bin"), str(folder), *tests],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "running\n"
    return run


@pytest.mark.parametrize(
    ("number", "ending"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Terminated")]
)
def test_ending_the_run_waits_for_the_tests_to_stop_their_server(tmp_path, number, ending):
    run = start_run(tmp_path)
    run.send_signal(number)
    _, told = run.communicate(timeout=30)
    assert not tmp_path.joinpath("server").exists()
    assert told.splitlines()[-1] == ending
    assert "the tests clean up first" in told


def test_a_run_in_the_background_of_a_script_can_be_ended_too(tmp_path):
    # A shell without a terminal starts "command &" with SIGINT ignored, which children inherit.
    run = start_run(tmp_path, preexec_fn=ignore_interrupts)
    run.terminate()
    run.communicate(timeout=30)
    assert not tmp_path.joinpath("server").exists()


def ignore_interrupts() -> None:
    """Start a process like a shell's background job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_ctrl_c_in_a_terminal_interrupts_the_tests_once(tmp_path):
    # The terminal tells the tests as well; being told twice would cut their clean-up short.
    tests = [sys.executable, "-c", TESTS, str(tmp_path)]
    process, terminal = pty.fork()
    if process == 0:
        run = [sys.executable, "-c", RUN, str(ROOT / "bin"), str(tmp_path), *tests]
        os.execv(sys.executable, run)
    read_until(terminal, b"running")
    os.write(terminal, b"\x03")
    read_until(terminal, b"KeyboardInterrupt")
    os.waitpid(process, 0)
    os.close(terminal)
    assert not tmp_path.joinpath("server").exists()


def read_until(terminal: int, wanted: bytes) -> None:
    """Read what the processes show until it holds these bytes."""
    shown = b""
    while wanted not in shown:
        shown += os.read(terminal, 1024)


def test_a_step_that_ends_by_itself_gives_its_exit_code(bin_modules, tmp_path):
    command = [sys.executable, "-c", "raise SystemExit(5)"]
    assert bin_modules["step"].run_step(command, folder=tmp_path, environ={}) == 5
