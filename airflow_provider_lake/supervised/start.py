# SPDX-License-Identifier: Apache-2.0
"""Starts a supervised process, or finds the process of an earlier attempt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from airflow_provider_lake.compat import AirflowException
from airflow_provider_lake.supervised import supervise
from airflow_provider_lake.supervised.run_folder import RunFolder

__all__ = ["LEASE_SECONDS", "PATIENCE_SECONDS", "is_rejoinable", "make_room", "start_supervised"]

LEASE_SECONDS = 300.0
"""The seconds after which a process is ended if no trigger and no task has renewed its lease.

A restarted triggerer should run again within this time.
"""
PATIENCE_SECONDS = supervise.GRACE_SECONDS + 5.0
"""The most seconds to wait for the end of a process after SIGTERM."""

_DONE, _NOTHING_TO_DO = 0, 10


def is_rejoinable(folder: RunFolder, asked: str) -> bool:
    """Return True if the process in ``folder`` has the request of this attempt, and still runs or
    has succeeded. But even for a success, return False if the process was started on another host,
    in another container, or before the last boot: no trigger could wait for it.

    ``asked`` is the digest of the request of this attempt, with the start of its DAG run.
    """
    if folder.asked != asked or folder.process is None:
        return False
    ending = folder.ending
    return folder.is_running if ending is None else ending.exit_code in (_DONE, _NOTHING_TO_DO)


def make_room(folder: RunFolder, asked: str) -> None:
    """End the process of an earlier attempt, and create the folder for a new process, whose work
    ``asked`` identifies. Raise ``AirflowException`` if the earlier process does not end.
    """
    if not folder.end(PATIENCE_SECONDS):
        raise AirflowException(
            f"process {folder.process and folder.process.pid} of an earlier attempt still runs, "
            "although this task sent it SIGTERM: retry the task, or end the process on the machine "
            "that runs this task"
        )
    folder.create(asked)


def start_supervised(
    folder: RunFolder, command: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Start a command that outlives this process as long as its lease is renewed. Raise
    ``AirflowException`` if the command cannot be started.
    """
    words = [sys.executable, "-P", "-m", supervise.__name__, str(folder.path), str(LEASE_SECONDS)]
    started = subprocess.run(
        [*words, *command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if started.returncode != 0:
        said = started.stderr or folder.output.read_text("utf-8", "replace")
        raise AirflowException(
            f"the process for the work of this task could not be started: {said.strip()}\n"
            "Nothing was done. Correct the cause and retry the task, or set deferrable=False"
        )
