# SPDX-License-Identifier: Apache-2.0
"""The id of a process: its number and its start. Until the next boot, no later process has it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ProcessId"]

# Positions in /proc/<pid>/stat, counted behind the name of the program.
_STATE, _STARTED = 0, 19
_OVER = ("Z", "X")
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process of this machine. A later process with the same number has another start, and so
    another id.
    """

    pid: int
    started: int
    """The start, in clock ticks since the boot of the machine."""

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Return the id of the running process with this number; raise ``FileNotFoundError`` if
        there is none.
        """
        return cls(pid, int(_stat(pid)[_STARTED]))

    @property
    def is_running(self) -> bool:
        """True while the process runs; False for a zombie, which has ended but was not reaped."""
        try:
            found = _stat(self.pid)
        except (FileNotFoundError, ProcessLookupError):
            return False
        return int(found[_STARTED]) == self.started and found[_STATE] not in _OVER

    def ask_to_end(self) -> None:
        """Send SIGTERM; do nothing if the process has ended."""
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def end(self, patience_seconds: float) -> bool:
        """Send SIGTERM, and wait up to ``patience_seconds``; return False if the process still runs
        then.
        """
        self.ask_to_end()
        end = time.monotonic() + patience_seconds
        while self.is_running:
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True


def _stat(pid: int) -> list[str]:
    # The name of a program may hold spaces and brackets.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
