"""Plays the part of Airflow for a task that defers itself: a triggerer, and the worker after it."""

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

from airflow_provider_lake.operators.ingest import LakeIngestOperator
from tests.airflow.versions import TaskDeferred

HELD_DRIVER = Path(__file__).parents[1] / "stack" / "held_dags" / "held_driver.py"

AS_SPARK_DOES = """
import os, sys
words = sys.argv[1:]
script = next(i for i, word in enumerate(words) if word.endswith(".py"))
os.execv(sys.executable, [sys.executable, *words[script:]])
"""
"""A program in place of spark-submit, which starts the real job."""
WITHOUT_TASKS = AS_SPARK_DOES.replace(
    "os.execv",
    """words = [word.replace('"engine": "spark"', '"engine": "python"') for word in words]
os.execv""",
)
"""The same, but the job's work on rows is done by its driver, which then starts no Java."""
KILLED_RUN_START = datetime(2026, 1, 1, tzinfo=UTC)


def defer(task, context):
    """Run a task until it waits for a trigger, and return this trigger as a triggerer makes it."""
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context)
    assert deferred.value.method_name == "execute_complete"
    return of_triggerer(deferred.value.trigger)


def of_triggerer(trigger):
    path, arguments = trigger.serialize()
    module, _, name = path.rpartition(".")
    given = json.loads(json.dumps({**arguments, "poll_interval": 0.05}))
    return getattr(import_module(module), name)(**given)


def event_of(trigger):
    """Return the payload of the first event."""

    async def first():
        async for event in trigger.run():
            return event.payload

    return asyncio.run(first())


def finish(task, context):
    """Run a deferrable task to its end."""
    return task.execute_complete(context, event_of(defer(task, context)))


class HeldIngest(LakeIngestOperator):
    """Its process is held where it publishes; see ``held_commit.py``."""

    def _program(self):
        return [sys.executable, str(HELD_DRIVER)]


class KilledBeforeTheDeferral(HeldIngest):
    """A worker that the kernel kills between the start of the process and the deferral."""

    def execute(self, context):
        context["dag_run"].start_date = KILLED_RUN_START
        return super().execute(context)

    def defer(self, **given):
        os.kill(os.getpid(), signal.SIGKILL)
