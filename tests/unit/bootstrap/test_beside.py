"""Steps that run in parallel to a run: their output is kept, and they end with the run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.unit.bootstrap.machine import ROOT, wait_for


@pytest.fixture
def beside(bin_modules):
    """Return the function with the folder and the variables of this process."""

    def start(steps):
        return bin_modules["beside"].beside(steps, folder=ROOT, environ=os.environ)

    return start


def python(code: str, *words: Path) -> list[str]:
    return [sys.executable, "-c", code, *map(str, words)]


def test_their_output_appears_once_the_last_has_ended(beside, capsys):
    steps = {"one": python("print('first')"), "two": python("print('last'); raise SystemExit(3)")}
    with beside(steps.items()) as finished:
        assert capsys.readouterr().out == ""
        codes = [code for code, _ in finished()]
    assert codes == [0, 3]
    assert capsys.readouterr().out == "\n== one ==\nfirst\n\n== two ==\nlast\n"


def test_a_step_is_chosen_after_the_step_before_has_ended(beside, tmp_path):
    mark, seen = tmp_path / "mark", []

    def steps():
        yield "one", python("import pathlib, sys; pathlib.Path(sys.argv[1]).touch()", mark)
        seen.append(mark.exists())

    with beside(steps()) as finished:
        finished()
    assert seen == [True]


SERVER = """
import pathlib, sys, time
server = pathlib.Path(sys.argv[1])
try:
    server.touch()
    while True:  # a signal right before one long sleep would not interrupt it
        time.sleep(0.05)
except KeyboardInterrupt:
    server.unlink()
"""


def leave(steps, error, *, after):
    """Leave the block of the steps by an error, once a file is there."""
    with steps:
        wait_for(after.exists)
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_run_ends_the_running_step_and_starts_no_other(
    beside, bin_modules, monkeypatch, tmp_path, error
):
    monkeypatch.setattr(bin_modules["step"], "_shares_terminal", lambda: False)
    server, other = tmp_path / "server", tmp_path / "other"
    steps = {"one": python(SERVER, server), "two": python(SERVER, other)}
    with pytest.raises(error):
        leave(beside(steps.items()), error, after=server)
    assert [*tmp_path.iterdir()] == []


CLEANING_UP = """
import pathlib, signal, sys, time
begun, again = map(pathlib.Path, sys.argv[1:])
signal.signal(signal.SIGINT, lambda *_: again.touch())
begun.touch()
time.sleep(0.5)
"""


def test_a_step_that_the_terminal_interrupts_is_not_interrupted_again(
    beside, bin_modules, monkeypatch, tmp_path
):
    monkeypatch.setattr(bin_modules["step"], "_shares_terminal", lambda: True)
    begun, again = tmp_path / "begun", tmp_path / "again"
    with pytest.raises(KeyboardInterrupt):
        leave(beside([("one", python(CLEANING_UP, begun, again))]), KeyboardInterrupt, after=begun)
    assert not again.exists()
