# SPDX-License-Identifier: Apache-2.0
"""Ends a process that a task has started, with all of its descendants."""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from socket import gethostname
from typing import Any

import psutil

__all__ = ["ProcessTree"]

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 0.05


class ProcessTree:
    """A process and its descendants at the time when this object was created.

    Create it before the first of these processes ends: the children of a dead process cannot be
    found.
    """

    def __init__(self, root: subprocess.Popen[Any] | None) -> None:
        self._members = [] if root is None else _family(root.pid)

    @property
    def is_gone(self) -> bool:
        """True if none of the processes runs."""
        return not any(map(_runs, self._members))

    def terminate(self, grace_seconds: float) -> None:
        """Send SIGTERM to all processes, wait up to ``grace_seconds``, and kill those that still
        run, with children that they have started meanwhile.

        No process is reaped here, because this runs in a signal handler: the interrupted code may
        be waiting for the exit code of the same process.
        """
        for process in self._members:
            _send(process.terminate)
        alive = _wait(self._members, grace_seconds)
        alive = list({*alive, *(late for each in alive for late in _family(each.pid))})
        for process in alive:
            _send(process.kill)
        for process in _wait(alive, grace_seconds):
            _log.warning(
                "process %s on %s does not end although it was killed: it may be waiting for a "
                "disk or the network; restart that machine if the process remains",
                *(process.pid, gethostname()),
            )


def _family(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _send(signal: Callable[[], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        signal()


def _wait(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait up to ``seconds`` for processes to end; return those that still run."""
    end = time.monotonic() + seconds
    while alive := [process for process in processes if _runs(process)]:
        if time.monotonic() >= end:
            return alive
        time.sleep(_PAUSE_SECONDS)
    return []


def _runs(process: psutil.Process) -> bool:
    """Return True if a process runs; False for a zombie, which has ended but was not reaped."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
