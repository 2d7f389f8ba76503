"""Runs steps in parallel with the rest of a run, and prints their output after they have ended."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import step


@contextmanager
def beside(
    steps: Iterable[tuple[str, Sequence[str]]], *, folder: Path, environ: Mapping[str, str]
) -> Iterator[Callable[[], list[tuple[int, float]]]]:
    """Run the commands of ``steps`` one after the other, while the ``with`` block runs. Each step
    is a pair of name and command. It is taken from ``steps`` when the step before has ended.

    Yields a function that waits for the last step, prints the output of all steps, and returns the
    exit code and the seconds of each. If the block ends early, the running step gets SIGINT and can
    clean up.
    """
    with tempfile.TemporaryFile("w+") as printed:
        lane = _Lane(steps, folder, environ, printed)
        lane.start()

        def finished() -> list[tuple[int, float]]:
            lane.join()
            printed.seek(0)
            print(printed.read(), end="", flush=True)
            return lane.results

        try:
            yield finished
        except KeyboardInterrupt as interrupt:
            lane.end(has_heard=step.reaches_steps(interrupt))
            raise
        finally:
            lane.end()


class _Lane(threading.Thread):
    def __init__(
        self,
        steps: Iterable[tuple[str, Sequence[str]]],
        folder: Path,
        environ: Mapping[str, str],
        printed: IO[str],
    ) -> None:
        super().__init__(daemon=True)
        self.results: list[tuple[int, float]] = []
        self._steps = steps
        self._folder = folder
        self._environ = dict(environ)
        self._printed = printed
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._is_ended = False

    def run(self) -> None:
        for name, command in self._steps:
            began = time.monotonic()
            if (running := self._begin(name, command)) is None:
                return
            self.results.append((running.wait(), time.monotonic() - began))

    def _begin(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes] | None:
        """Start a step; return None if the run has ended meanwhile."""
        with self._lock:
            if self._is_ended:
                return None
            print(f"\n== {name} ==", file=self._printed, flush=True)
            self._running = subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environ,
                stdout=self._printed,
                stderr=subprocess.STDOUT,
            )
            return self._running

    def end(self, *, has_heard: bool = False) -> None:
        """Send SIGINT to the running step, unless it already got the signal (``has_heard``). Wait
        for its end, and start no further step.
        """
        with self._lock:
            is_first, self._is_ended = not self._is_ended, True
        if is_first and not has_heard and self._running and self._running.poll() is None:
            self._running.send_signal(signal.SIGINT)
        self.join()
