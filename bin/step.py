"""Runs one step of a longer run, and lets the step clean up if the run is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """This process got SIGTERM or SIGHUP. Its steps did not get the signal."""


def listen() -> None:
    """Raise ``KeyboardInterrupt`` on SIGINT, SIGTERM and SIGHUP, even if a shell has started this
    process with &.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, _terminate)


def run_step(command: Sequence[str], *, folder: Path, environ: Mapping[str, str]) -> int:
    """Run a step to its end, and return its exit code.

    On an interrupt the step gets SIGINT, as by Ctrl-C, and is never killed: killed tests would
    leave their servers running. The interrupt is raised after the step has ended.
    """
    step = subprocess.Popen(command, cwd=folder, env=dict(environ))
    ending: KeyboardInterrupt | None = None
    while True:
        try:
            code = step.wait()
            break
        except KeyboardInterrupt as interrupt:
            if ending or not reaches_steps(interrupt):
                step.send_signal(signal.SIGINT)
            if not ending:
                print("\nending: the tests clean up first", file=sys.stderr, flush=True)
            ending = interrupt
    if ending:
        raise ending
    return code


def reaches_steps(interrupt: KeyboardInterrupt) -> bool:
    """Return True if the steps of this run got the interrupt as well."""
    return not isinstance(interrupt, Terminated) and _shares_terminal()


def _shares_terminal() -> bool:
    """Return True if Ctrl-C also reaches the step, because a terminal signals all of its foreground
    processes.
    """
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
