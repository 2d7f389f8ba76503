# SPDX-License-Identifier: Apache-2.0
"""Runs a command for a task that has no worker: ``supervise FOLDER LEASE_SECONDS COMMAND...``.

The program starts a second process, the supervisor, and returns once the supervisor is recorded in
the folder. The supervisor has its own session, so that the end of a worker does not reach it. The
supervisor ends the command on SIGTERM, or if the lease in the folder was not renewed for
``LEASE_SECONDS``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

from airflow_provider_lake.spark import launch
from airflow_provider_lake.spark.process_tree import ProcessTree
from airflow_provider_lake.supervised.process_id import ProcessId
from airflow_provider_lake.supervised.run_folder import Ending, RunFolder, Why

__all__ = ["GRACE_SECONDS", "main"]

GRACE_SECONDS = 10.0
"""The seconds between SIGTERM and SIGKILL, in which a command can delete its uncommitted files."""

_LOOK_SECONDS = 0.25


def main(words: list[str]) -> int:
    """Start the supervisor; return 0 once it is recorded in the folder, and 1 if it fails earlier.
    In the supervisor, return 0 after the command has ended.

    ``words`` are the folder, the lease in seconds, and the words of the command.
    """
    folder, lease_seconds, command = RunFolder(words[0]), float(words[1]), words[2:]
    ready, recorded = os.pipe()
    if os.fork() != 0:
        os.close(recorded)
        return 0 if os.read(ready, 1) else 1
    os.setsid()
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    with folder.output.open("ab") as output:  # what the task must not wait for
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    folder.record_process(ProcessId.of(os.getpid()))
    own = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
    child = subprocess.Popen([*own, *command])
    os.write(recorded, b"1")
    os.close(recorded)
    ending = _wait(child, folder, asked, lease_seconds)
    with suppress(FileNotFoundError):  # the task was killed, and its folder deleted
        folder.record_ending(ending)
    return 0


def _wait(
    child: subprocess.Popen[bytes], folder: RunFolder, asked: threading.Event, lease_seconds: float
) -> Ending:
    lease = _Lease(folder, lease_seconds)
    while child.poll() is None:
        why: Why | None = "asked" if asked.is_set() else "lease" if lease.is_over() else None
        if why is not None:
            folder.refuse_to_be_rejoined()
            ProcessTree(child).terminate(GRACE_SECONDS)
            return Ending(child.wait(), why)
        time.sleep(_LOOK_SECONDS)
    return Ending(child.wait())


class _Lease:
    """The lease of a command, measured with a monotonic clock, which ignores changes of the system
    time.
    """

    def __init__(self, folder: RunFolder, seconds: float) -> None:
        self._folder, self._seconds = folder, seconds
        self._renewed, self._since = folder.renewed, time.monotonic()

    def is_over(self) -> bool:
        renewed = self._folder.renewed
        if renewed != self._renewed:
            self._renewed, self._since = renewed, time.monotonic()
        return renewed is None or time.monotonic() - self._since > self._seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
