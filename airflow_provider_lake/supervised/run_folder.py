# SPDX-License-Identifier: Apache-2.0
"""The directory of a supervised process, with all that its task needs to find the process again.

==================  ========================================================================
file                content
==================  ========================================================================
``asked``           the digest of the request, and the start of the DAG run; only an attempt with
                    the same text waits for this process. Deleted before the supervisor ends the
                    command
``process``         the id of the supervisor, and its host
``lease``           empty; a task or a trigger renews its modification time
``output``          the output of the command
``logged``          the number of bytes of the output that are in the task's log
``<name>.json``     the result of the job
``ended``           the exit code of the command; if the supervisor ended it, the reason too
==================  ========================================================================

All attempts of a task share the name of the directory. ``create`` and ``remove_of`` hold a lock, so
that the end of one process does not delete the directory of the next process.

Only the standard library is used, because the supervisor imports this module.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from airflow_provider_lake.supervised.host import this_host
from airflow_provider_lake.supervised.process_id import ProcessId

__all__ = ["Ending", "RunFolder", "Why"]

Why: TypeAlias = Literal["asked", "lease"]

_ABANDONED_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a command: its exit code, and the reason if the supervisor has ended it."""

    exit_code: int
    why: Why | None = None
    """The reason why the supervisor ended the command: ``asked`` for SIGTERM, ``lease`` for a lease
    that was not renewed; None if the command ended by itself.
    """


class RunFolder:
    """The directory of one supervised process; only the user of the process can read it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.output = self.path / "output"
        self._lease = self.path / "lease"

    @classmethod
    def named(cls, name: str) -> RunFolder:
        """Return the directory of a task on this machine, by the name that all of its attempts
        share.

        Raises ``PermissionError`` if another user may write to the parent directory.
        """
        return cls(_root() / name)

    @property
    def exists(self) -> bool:
        """True if the directory exists."""
        return self._lease.exists()

    def create(self, asked: str) -> None:
        """Create the directory for a new process; replace the directory of an earlier one.
        ``asked`` identifies the work: the digest of the request, and the start of the DAG run.

        Also remove all directories older than a day that have no running process.
        """
        with _locked(self.path.parent):
            _remove_abandoned(self.path.parent)
            self.remove()
            self.path.mkdir(mode=0o700)
            self._write("asked", asked)
            self.renew()

    def remove(self) -> None:
        """Delete the directory with its files; ignore errors."""
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_of(self, process: ProcessId) -> None:
        """Delete the directory if it belongs to ``process``; it may already belong to a later
        process.
        """
        with suppress(FileNotFoundError), _locked(self.path.parent):
            if self.process == process:
                self.remove()

    @property
    def asked(self) -> str | None:
        """The text that identifies the work of the process; None if none is recorded."""
        found: str | None = self._read("asked")
        return found

    def refuse_to_be_rejoined(self) -> None:
        """Delete the text that identifies the work, so that no later attempt waits for a process
        that is being ended.
        """
        with suppress(OSError):  # the command must be ended in any case
            (self.path / "asked").unlink()

    @property
    def process(self) -> ProcessId | None:
        """The supervisor; None if none is recorded, or if it was started on another host, in
        another container, or before the last boot.
        """
        found = self._read("process")
        if found is None or found["host"] != this_host():
            return None
        return ProcessId(found["pid"], found["started"])

    def record_process(self, process: ProcessId) -> None:
        """Record the supervisor."""
        known = {"pid": process.pid, "started": process.started, "host": this_host()}
        self._write("process", known)

    @property
    def is_running(self) -> bool:
        """True while the supervisor runs."""
        process = self.process
        return process is not None and process.is_running

    @property
    def ending(self) -> Ending | None:
        """The end of the command; None if the command still runs, or if its supervisor was
        killed.
        """
        found = self._read("ended")
        return None if found is None else Ending(found["exit_code"], found["why"])

    def record_ending(self, ending: Ending) -> None:
        """Record the end of the command."""
        self._write("ended", {"exit_code": ending.exit_code, "why": ending.why})

    @property
    def logged(self) -> int:
        """The number of bytes of the output that are in the task's log."""
        return self._read("logged") or 0

    def record_logged(self, count: int) -> None:
        """Record the number of bytes of the output that are in the task's log."""
        self._write("logged", count)

    def renew(self) -> None:
        """Renew the lease, so that the supervisor does not end the command."""
        with suppress(FileNotFoundError):  # the task was killed, and its folder deleted
            self._lease.touch()

    @property
    def renewed(self) -> int | None:
        """The time of the last renewal of the lease, in epoch nanoseconds; None if the directory
        was deleted.
        """
        try:
            return self._lease.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def end(self, patience_seconds: float) -> bool:
        """Send SIGTERM to the supervisor, and wait up to ``patience_seconds`` until it has ended
        its command. Return False if the supervisor still runs then.
        """
        process = self.process
        return process is None or process.end(patience_seconds)

    def _read(self, name: str) -> Any:
        """Return the value in a file; None without the file, or if a loss of power has damaged the
        file, which often leaves it empty.
        """
        try:
            return json.loads((self.path / name).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def _write(self, name: str, value: Any) -> None:
        """Replace a file in one step, because other processes may read it at any time."""
        fresh = self.path / f"{name}.new"
        fresh.write_text(json.dumps(value), "utf-8")
        fresh.rename(self.path / name)


def _root() -> Path:
    root = Path(tempfile.gettempdir(), f"lake-tasks-{os.getuid()}")
    root.mkdir(mode=0o700, exist_ok=True)
    found = root.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_ours or found.st_mode & 0o022:
        raise PermissionError(
            f"{root} is not a directory that only this user may write to: delete it, and the next "
            "task creates it for this user alone"
        )
    return root


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Exclude other processes that create or delete directories of this user."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(root: Path) -> None:
    for each in map(RunFolder, root.iterdir()):
        with suppress(OSError, ValueError):
            age = time.time() - each.path.stat().st_mtime
            if age > _ABANDONED_SECONDS and not each.is_running:
                each.remove()
