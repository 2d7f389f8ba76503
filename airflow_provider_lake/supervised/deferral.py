# SPDX-License-Identifier: Apache-2.0
"""Defers a task while its work runs in a supervised process on this machine."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from airflow_provider_lake.supervised.host import this_host, triggerer_is_here
from airflow_provider_lake.supervised.run_folder import RunFolder
from airflow_provider_lake.supervised.start import is_rejoinable, make_room, start_supervised

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

__all__ = ["COMPLETE", "Deferral", "folder_of", "reason_to_keep_the_slot", "time_limit"]

COMPLETE = "execute_complete"
"""The method that Airflow calls when the trigger has fired."""

_log = logging.getLogger(__name__)


def reason_to_keep_the_slot() -> str | None:
    """Return the reason why no trigger can wait for a process on this machine; None if a trigger
    can.
    """
    if this_host() is None:
        return "this system has no /proc, so a trigger could confuse two processes"
    if not triggerer_is_here():
        return "no triggerer runs on this machine, so no trigger could see the process of the task"
    return None


def time_limit(task: BaseOperator) -> float | None:
    """Return the time, in epoch seconds, at which a trigger must end the work of a task that is
    deferred now; None without ``execution_timeout``.
    """
    limit = task.execution_timeout
    return None if limit is None else time.time() + limit.total_seconds()


def folder_of(name: str, warehouse: str) -> RunFolder:
    """Return the directory of the process with this name. Its path also depends on the warehouse
    and on Airflow's home: a second Airflow of the same user may have tasks of the same name.

    Raises ``PermissionError`` if another user may write to the parent directory.
    """
    home = os.path.abspath(os.path.expanduser(os.environ.get("AIRFLOW_HOME") or "~/airflow"))
    place = warehouse if "://" in warehouse else os.path.abspath(os.path.expanduser(warehouse))
    digest = hashlib.blake2b(json.dumps([home, place]).encode(), digest_size=8).hexdigest()
    folder, former = RunFolder.named(f"{name}.{digest}"), RunFolder.named(name)
    # The release before has started processes in directories without the digest.
    return former if former.exists and not folder.exists else folder


class Deferral:
    """The supervised process of a task. All attempts of the task share its ``folder``; ``asked`` is
    the digest of the task's request, with the start of the DAG run.
    """

    def __init__(self, task: BaseOperator, folder: RunFolder, asked: str) -> None:
        self.folder = folder
        self._task = task
        self._asked = asked

    def rejoin(self) -> None:
        """Defer the task if the process of an earlier attempt had the same request, and still runs
        or has succeeded. Otherwise return.
        """
        if not is_rejoinable(self.folder, self._asked):
            return
        _log.info(
            "process %s of an earlier attempt does this work, or has done it: the task waits for "
            "its result",
            self.folder.process and self.folder.process.pid,
        )
        self._defer()

    def make_room(self) -> None:
        """Create the folder of a new process, after ending the process of an earlier attempt. Raise
        ``AirflowException`` if that process does not end.
        """
        make_room(self.folder, self._asked)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
        """Start the process and defer the task. Raise ``AirflowException`` if the process cannot be
        started.
        """
        start_supervised(self.folder, command, environment)
        self._defer()

    def _defer(self) -> NoReturn:
        from airflow_provider_lake.triggers.process import LakeProcessTrigger

        process, host = self.folder.process, this_host()
        if process is None or host is None:
            raise FileNotFoundError(
                f"the record of the process in {self.folder.path} is missing: retry the task"
            )
        trigger = LakeProcessTrigger(
            folder=str(self.folder.path),
            pid=process.pid,
            started=process.started,
            host=host,
            ends_at=time_limit(self._task),
        )
        _log.info("the task gives its worker slot back and waits for process %s", process.pid)
        self._task.defer(trigger=trigger, method_name=COMPLETE)
