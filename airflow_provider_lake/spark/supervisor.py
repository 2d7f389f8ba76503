"""Ends a task whose supervisor has died: nobody hears of it, and its retry may be at work.

The supervisor is the process that Airflow lets look after the task's own. Airflow itself leaves
the task running until it says something, which a job may not do for hours.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CommsDecoder

from spark_jobs.runtime.watchdog import watch_parent

__all__ = ["ending_with_the_supervisor"]

# Airflow needs some of it to find out that nobody listens.
_GRACE_SECONDS = 10.0


@contextmanager
def ending_with_the_supervisor() -> Iterator[None]:
    """Inside, the death of the supervisor is the SIGTERM that a user's "mark failed" sends."""
    if not _has_supervisor():
        yield
        return
    done = threading.Event()
    watch_parent(grace_seconds=_GRACE_SECONDS, done=done)
    try:
        yield
    finally:
        done.set()


def _has_supervisor() -> bool:
    """A task of ``dag.test()`` has none, and may outlive the shell it was started in."""
    return isinstance(getattr(task_runner, "SUPERVISOR_COMMS", None), CommsDecoder)
