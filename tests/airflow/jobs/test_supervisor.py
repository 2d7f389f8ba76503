"""A task looks after its supervisor while it is at work, and where it has one."""

import threading

import pytest
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CommsDecoder

from airflow_provider_lake.jobs.airflow_supervisor import ending_with_the_supervisor


def watchers():
    return [thread for thread in threading.enumerate() if thread.name == "parent"]


@pytest.fixture
def supervised(monkeypatch):
    """The environment of a task's process; a real one is killed in tests/stack."""
    comms = CommsDecoder.__new__(CommsDecoder)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)


def test_a_task_with_a_supervisor_watches_it_as_long_as_it_works(supervised):
    with ending_with_the_supervisor():
        [watcher] = watchers()
    watcher.join(30)
    assert watchers() == []


def test_a_task_that_a_person_runs_may_outlive_the_shell(monkeypatch):
    monkeypatch.delattr(task_runner, "SUPERVISOR_COMMS", raising=False)
    with ending_with_the_supervisor():
        assert watchers() == []
