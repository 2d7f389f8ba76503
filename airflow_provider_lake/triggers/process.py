# SPDX-License-Identifier: Apache-2.0
"""Waits for a supervised process on this machine, and ends the process when its task is killed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lake.jobs.job_output import JobOutput
from airflow_provider_lake.supervised.host import this_host
from airflow_provider_lake.supervised.output import OutputLog
from airflow_provider_lake.supervised.process_id import ProcessId
from airflow_provider_lake.supervised.run_folder import RunFolder
from airflow_provider_lake.supervised.start import PATIENCE_SECONDS

__all__ = ["ELSEWHERE", "ENDED", "TIMED_OUT", "LakeProcessTrigger"]

ENDED = "ended"
ELSEWHERE = "elsewhere"
TIMED_OUT = "timed_out"

_log = logging.getLogger(__name__)


class LakeProcessTrigger(BaseTrigger):
    """Fires when a process has ended, or immediately if the triggerer cannot see the process. The
    result of the process is in ``folder``.

    The payload is ``{"status": …, "folder": …, "pid": …, "started": …}``, with the id of the
    process. The status is ``ended``; ``timed_out`` if the trigger has ended the process at
    ``ends_at``, in epoch seconds; or ``elsewhere`` if the process runs on another machine, in
    another container, or as another user, or if ``folder`` is missing or belongs to a later
    attempt.
    """

    def __init__(
        self,
        *,
        folder: str,
        pid: int,
        started: int,
        host: str,
        ends_at: float | None = None,
        poll_interval: float = 1.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.folder = folder
        self.pid = pid
        self.started = started
        self.host = host
        self.ends_at = ends_at
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path, and the arguments with which the triggerer builds this trigger."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "folder": self.folder,
            "pid": self.pid,
            "started": self.started,
            "host": self.host,
            "ends_at": self.ends_at,
            "poll_interval": self.poll_interval,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check the process every ``poll_interval`` seconds, in a thread; yield one event."""
        run = _ProcessWatch(RunFolder(self.folder), self._process, self.ends_at)
        status = ELSEWHERE
        if await asyncio.to_thread(self._sees, run.folder):
            while (found := await asyncio.to_thread(run.look)) is None:
                await asyncio.sleep(self.poll_interval)
            status = found
        process = {"folder": self.folder, "pid": self.pid, "started": self.started}
        payload = {"status": status, **process}
        yield TriggerEvent(payload)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """End the process after a user has cleared the task, or marked it as success or failed.
        Airflow calls this method from version 3.3 on.
        """
        # Airflow cancels a call that takes more than a second; a thread continues.
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        folder, process = RunFolder(self.folder), self._process
        if not self._sees(folder):
            if self.host == this_host() and not process.is_running:
                _log.info("process %s has already ended", self.pid)
                return
            _log.warning(
                "process %s cannot be ended from here, because it was started on another machine "
                "or by another user, or the files that record it are missing. The process ends by "
                "itself within five minutes, because no triggerer watches it any more",
                self.pid,
            )
        elif process.end(PATIENCE_SECONDS):
            # The next attempt may already have its own process in a directory of the same name.
            folder.remove_of(process)
            _log.info(
                "ended process %s, because its task was cleared, or marked as success or failed",
                self.pid,
            )
        else:
            _log.warning(
                "process %s on host %s still runs after SIGTERM: end it there, with its child "
                "processes",
                self.pid,
                self.host.partition(" ")[0],
            )

    @property
    def _process(self) -> ProcessId:
        return ProcessId(self.pid, self.started)

    def _sees(self, folder: RunFolder) -> bool:
        if self.host != this_host():
            return False
        try:
            return folder.process == self._process
        except PermissionError:
            return False


class _ProcessWatch:
    def __init__(self, folder: RunFolder, process: ProcessId, ends_at: float | None) -> None:
        self.folder, self._process, self._ends_at = folder, process, ends_at
        self._output = OutputLog(folder, JobOutput())

    def look(self) -> str | None:
        """Renew the lease, and log the new output. Return the status once the process has ended, or
        was ended at the time limit; None while it runs.
        """
        is_over = not self._process.is_running
        if self.folder.process == self._process:  # otherwise the output is that of a later attempt
            self._output.log_new()
        if is_over:
            return ENDED
        if self._ends_at is not None and time.time() >= self._ends_at:
            self._process.end(PATIENCE_SECONDS)
            return TIMED_OUT
        self.folder.renew()
        return None
