"""Every Python process of a driver that is to be killed loads this, the workers of Spark, too.

They count the storage calls of them all, before each and after it, in the file
``LAKE_KILL_COUNT``. At number ``LAKE_KILL_AT`` the whole run is killed: the driver's process group,
in which its JVM is, and every Python process that has come this far.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

_COUNT, _AT = os.environ.get("LAKE_KILL_COUNT"), int(os.environ.get("LAKE_KILL_AT", "0"))


def _meet() -> None:
    assert _COUNT is not None
    with open(_COUNT, "ab", buffering=0) as file:
        file.write(b"%8d\n" % os.getpid())  # appended whole, whoever else does
    if Path(_COUNT).stat().st_size // 9 == _AT:
        _kill_all(_COUNT)


def _kill_all(count: str) -> None:
    pids = {int(line) for line in Path(count).read_text().split()} - {os.getpid()}
    with suppress(ProcessLookupError):
        os.killpg(int(Path(f"{count}.group").read_text()), signal.SIGKILL)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _watch() -> None:
    from tests.crash.killed_process import STORAGE

    def counted(call):
        def counting(*args, **kwargs):
            _meet()
            done = call(*args, **kwargs)
            _meet()
            return done

        return counting

    for owner, name in STORAGE:
        setattr(owner, name, counted(getattr(owner, name)))


if _COUNT is not None:
    _watch()
