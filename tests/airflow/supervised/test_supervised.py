"""A supervised process outlives its starter, and ends as soon as no task asks for it."""

import os
import signal
import sys
import time

import psutil
import pytest

from airflow_provider_lake.supervised import host, run_folder, start
from airflow_provider_lake.supervised.process_id import ProcessId
from airflow_provider_lake.supervised.run_folder import Ending, RunFolder

PATIENCE_SECONDS = 120
SLOW_TO_END = """
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path({late!r}).touch()
    time.sleep(3)
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
pathlib.Path({ready!r}).touch()
time.sleep(600)
"""
"""A command that needs some seconds after SIGTERM, as one does that deletes its files."""


@pytest.fixture
def folder(tmp_path):
    """The folder of a process; the process is ended after the test."""
    folder = RunFolder(tmp_path / "work")
    folder.create("asked")
    yield folder
    folder.end(PATIENCE_SECONDS)


def start_python(folder, code):
    start.start_supervised(folder, [sys.executable, "-c", code], {"TEST_SAID": "hello"})


def wait_for(condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def command_of(folder):
    """The process of the command, once it runs."""
    wait_for(lambda: psutil.Process(folder.process.pid).children())
    return psutil.Process(folder.process.pid).children()[0]


def test_the_output_and_the_exit_code_are_kept_for_the_task(folder):
    start_python(folder, "import os, sys; print(os.environ['TEST_SAID']); sys.exit(3)")

    wait_for(lambda: not folder.is_running)

    assert folder.output.read_text() == "hello\n"
    assert folder.ending == Ending(3)


def test_the_process_has_a_session_of_its_own(folder):
    start_python(folder, "import time; time.sleep(600)")

    pid = folder.process.pid

    assert os.getsid(pid) == pid
    assert psutil.Process(pid).ppid() != os.getpid()


def test_the_command_ends_when_it_is_asked_to(folder):
    start_python(folder, "import time; time.sleep(600)")
    command = command_of(folder)

    assert folder.end(PATIENCE_SECONDS)

    assert not command.is_running()
    assert folder.ending == Ending(-signal.SIGTERM, "asked")


def test_the_command_ends_when_nothing_asks_for_it(folder, monkeypatch):
    monkeypatch.setattr(start, "LEASE_SECONDS", 0.5)
    start_python(folder, "import time; time.sleep(600)")

    wait_for(lambda: not folder.is_running)

    assert folder.ending == Ending(-signal.SIGTERM, "lease")


@pytest.mark.parametrize("why", ["asked", "lease"])
def test_a_process_that_is_being_ended_is_not_rejoined(folder, monkeypatch, tmp_path, why):
    """Else a retry would wait for it and report its end as a failure of the retry."""
    monkeypatch.setattr(start, "LEASE_SECONDS", 0.5 if why == "lease" else 600)
    ready, late = tmp_path / "ready", tmp_path / "late"
    start_python(folder, SLOW_TO_END.format(ready=str(ready), late=str(late)))
    wait_for(ready.exists)
    assert why == "lease" or start.is_rejoinable(folder, "asked")
    if why == "asked":
        os.kill(folder.process.pid, signal.SIGTERM)
    wait_for(late.exists)

    assert not start.is_rejoinable(folder, "asked")

    process = folder.process
    start.make_room(folder, "asked")
    assert not process.is_running


def test_the_command_ends_when_its_folder_is_deleted(folder):
    start_python(folder, "import time; time.sleep(600)")
    process = folder.process

    folder.remove()

    wait_for(lambda: not process.is_running)


def test_the_command_ends_with_a_supervisor_that_is_killed(folder):
    start_python(folder, "import time; time.sleep(600)")
    command = command_of(folder)

    os.kill(folder.process.pid, signal.SIGKILL)

    wait_for(lambda: not command.is_running())
    assert folder.ending is None
    assert not folder.is_running


def test_a_program_that_cannot_be_started_is_named_in_the_output(folder):
    start.start_supervised(folder, ["/no/such/program"], {})

    wait_for(lambda: not folder.is_running)

    assert "cannot start /no/such/program" in folder.output.read_text()


def test_a_later_process_with_the_same_number_is_another_one():
    mine = ProcessId.of(os.getpid())
    earlier = ProcessId(mine.pid, mine.started - 1)

    assert mine.is_running
    assert not earlier.is_running


def test_a_success_before_the_last_boot_is_not_rejoined(folder, monkeypatch):
    start_python(folder, "pass")
    wait_for(lambda: not folder.is_running)
    assert start.is_rejoinable(folder, "asked")

    monkeypatch.setattr(run_folder, "this_host", lambda: "this host since its next boot")

    assert not start.is_rejoinable(folder, "asked")


def test_a_process_of_another_boot_is_not_known(folder, monkeypatch):
    start_python(folder, "import time; time.sleep(600)")
    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "this_host", lambda: "this host since its next boot")

        assert folder.process is None
        assert not folder.is_running
        assert folder.end(0)

    assert folder.is_running


def test_a_directory_that_others_may_change_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    root = RunFolder.named("work").path.parent
    assert root.stat().st_mode & 0o777 == 0o700

    root.chmod(0o777)

    with pytest.raises(PermissionError, match="delete it"):
        RunFolder.named("work")


@pytest.mark.parametrize("damage", [b"", b"\0\0\0", b"\xff"])
def test_files_that_a_loss_of_power_has_damaged_count_as_missing(folder, tmp_path, damage):
    for name in ("asked", "process", "ended", "logged"):
        (folder.path / name).write_bytes(damage)
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(folder.path, (two_days_ago, two_days_ago))

    assert (folder.asked, folder.process, folder.ending, folder.logged) == (None, None, None, 0)
    assert not start.is_rejoinable(folder, "asked")
    RunFolder(tmp_path / "next").create("asked")  # deletes abandoned directories
    assert not folder.exists


def test_folders_that_were_abandoned_are_deleted(tmp_path):
    old, new = RunFolder(tmp_path / "old"), RunFolder(tmp_path / "new")
    old.create("asked")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old.path, (two_days_ago, two_days_ago))

    new.create("asked")

    assert not old.exists
    assert new.exists


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        (["/usr/bin/python3", "/opt/venv/bin/airflow", "triggerer"], True),
        (["airflow", "triggerer", "--skip-serve-logs"], True),
        (["/opt/venv/bin/airflow", "scheduler"], False),
        (["vim", "triggerer"], False),
        ([], False),
        (None, False),
    ],
)
def test_a_triggerer_is_known_by_its_words(words, is_one):
    assert host._is_triggerer(words) == is_one
