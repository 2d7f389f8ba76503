# SPDX-License-Identifier: Apache-2.0
"""Ends a task whose supervisor has died: the task's result is lost, and its retry may be running.

The supervisor is the process that watches the process of the task for Airflow. After the
death of the supervisor, the task would end only when it sends its next message to the supervisor,
which may be hours later.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ending_with_the_supervisor"]

# Airflow needs some time to notice that the supervisor has died.
_GRACE_SECONDS = 10.0


@contextmanager
def ending_with_the_supervisor() -> Iterator[None]:
    """Send this process SIGTERM if the supervisor dies during the block, as Airflow does for a task
    that a user marks as failed.
    """
    if not _has_supervisor():
        yield
        return
    from spark_jobs.runtime.watchdog import watch_parent  # a DAG file does not need it

    done = threading.Event()
    watch_parent(grace_seconds=_GRACE_SECONDS, done=done)
    try:
        yield
    finally:
        done.set()


def _has_supervisor() -> bool:
    """Return True if the task has a supervisor; a task of ``dag.test()`` has none.

    A process that has not loaded Airflow's task runner runs no task, so it has no supervisor. The
    task runner is not imported here, because since Airflow 3.4 it loads a hundred modules, which
    would slow down the parsing of DAG files.
    """
    runner = sys.modules.get("airflow.sdk.execution_time.task_runner")
    if runner is None:
        return False
    from airflow.sdk.execution_time.comms import CommsDecoder

    return isinstance(getattr(runner, "SUPERVISOR_COMMS", None), CommsDecoder)
