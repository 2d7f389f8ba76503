# SPDX-License-Identifier: Apache-2.0
"""Copies the output of a supervised process into the log of its task, each line once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator

from airflow_provider_lake.jobs.job_output import JobOutput
from airflow_provider_lake.supervised.run_folder import RunFolder

__all__ = ["OutputLog"]

_TAIL_LINES = 20
_log = logging.getLogger(__name__)


class OutputLog:
    """The output of a process, read while it grows.

    The folder stores the number of bytes that are in the log already. A restarted triggerer, or the
    task after the end of the process, continues after these bytes.
    """

    def __init__(self, folder: RunFolder, output: JobOutput) -> None:
        self._folder, self._output = folder, output
        self._read = 0
        self._last: deque[str] = deque(maxlen=_TAIL_LINES)

    @property
    def tail(self) -> str:
        """The text to add to an error message: an introduction and at most the last 20 lines; empty
        if there is no output.
        """
        return "\n".join([". The last lines of its output:", *self._last]) if self._last else ""

    def log_new(self, *, is_over: bool = False) -> None:
        """Log the new lines. Until ``is_over``, an incomplete last line waits for the next call."""
        logged = self._folder.logged
        for line in self._lines(is_over=is_over):
            is_new = self._read > logged
            for level, text in self._output.readable(line):
                self._last.append(text)
                if is_new:
                    _log.log(level, "%s", text)
        if is_over:
            for level, text in self._output.rest():
                _log.log(level, "%s", text)
        if self._read > logged:
            self._folder.record_logged(self._read)

    def _lines(self, *, is_over: bool) -> Iterator[str]:
        try:
            with self._folder.output.open("rb") as output:
                output.seek(self._read)
                for line in output:
                    if not is_over and not line.endswith(b"\n"):
                        return
                    self._read += len(line)
                    yield line.decode("utf-8", "replace").rstrip("\n")
        except FileNotFoundError:  # the task was killed, and its folder deleted
            return
