"""The trigger of a cleared attempt touches nothing of the process of the next attempt."""

import asyncio
import sys

import pytest

from airflow_provider_lake.supervised import start
from airflow_provider_lake.supervised.host import this_host
from airflow_provider_lake.supervised.process_id import ProcessId
from airflow_provider_lake.supervised.run_folder import RunFolder
from airflow_provider_lake.triggers.process import LakeProcessTrigger

PATIENCE_SECONDS = 120


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "work")
    yield folder
    folder.end(PATIENCE_SECONDS)


def begin(folder, asked):
    """Start the process of an attempt, and return its trigger."""
    start.make_room(folder, asked)
    words = [
        sys.executable,
        "-S",
        "-c",
        "import time; print('at work', flush=True); time.sleep(600)",
    ]
    start.start_supervised(folder, words, {})
    known = folder.process
    return LakeProcessTrigger(
        folder=str(folder.path),
        pid=known.pid,
        started=known.started,
        host=this_host(),
        poll_interval=0.05,
    )


def process_of(trigger):
    return ProcessId(trigger.pid, trigger.started)


@pytest.fixture
def begun_meanwhile(folder, monkeypatch):
    """The next attempt begins when the trigger has ended its process, before it does more."""
    begun, end = [], ProcessId.end

    def end_and_begin(process, seconds):
        monkeypatch.setattr(ProcessId, "end", end)
        is_over = process.end(seconds)
        begun.append(begin(folder, "cleared"))
        return is_over

    monkeypatch.setattr(ProcessId, "end", end_and_begin)
    return begun


def test_a_clear_leaves_the_next_attempt_its_directory(folder, begun_meanwhile):
    first = begin(folder, "asked")

    asyncio.run(first.on_kill())

    [second] = begun_meanwhile
    assert not process_of(first).is_running
    assert folder.process == process_of(second)
    assert process_of(second).is_running


def test_a_clear_after_the_next_attempt_has_begun_ends_nothing(folder, caplog):
    caplog.set_level("INFO")
    first = begin(folder, "asked")
    second = begin(folder, "cleared")

    asyncio.run(first.on_kill())

    assert folder.process == process_of(second)
    assert process_of(second).is_running
    assert [each.levelname for each in caplog.records] == ["INFO"]


def test_a_clear_deletes_the_directory_if_no_attempt_follows(folder):
    first = begin(folder, "asked")

    asyncio.run(first.on_kill())

    assert not process_of(first).is_running
    assert not folder.path.exists()


def test_a_clear_ends_what_it_has_begun_after_airflow_has_cancelled_the_call(folder):
    first = begin(folder, "asked")

    async def kill():
        killing = asyncio.create_task(first.on_kill())
        await asyncio.sleep(0.1)
        killing.cancel()

    asyncio.run(kill())

    assert not process_of(first).is_running
    assert not folder.path.exists()


def test_the_next_attempt_logs_its_output_from_the_first_line(folder):
    first = begin(folder, "asked")

    async def watch():
        watching = asyncio.create_task(anext(first.run()))
        while folder.logged == 0:
            await asyncio.sleep(0.05)
        begin(folder, "cleared")  # blocks the loop: the trigger looks again when it has begun
        await watching

    asyncio.run(watch())

    assert folder.logged == 0
