# SPDX-License-Identifier: Apache-2.0
"""Reads the marked lines that a job prints for this provider among all other output of a driver."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["LOG", "PROGRESS", "REPORT", "SPARK", "JobOutput", "progress_as_sentences"]

REPORT = "LAKE_REPORT "
PROGRESS = "LAKE_PROGRESS "
LOG = "LAKE_LOG "
SPARK = "LAKE_SPARK "

_UNANSWERED = re.compile(r"Failed to connect to master (\S+)")
# The task's log on Airflow's page folds the lines between these two.
_FOLD, _UNFOLD = "::group::Messages of Spark", "::endgroup::"

_log = logging.getLogger(__name__)


class JobOutput:
    """Reads the output of a driver: keeps the result of the job, and passes the Spark application
    to ``on_spark``.
    """

    def __init__(self, *, on_spark: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.result: dict[str, Any] | None = None
        """The last complete result that the driver printed; None before the first. A driver that is
        started twice can print several.
        """
        self.unanswered: str | None = None
        """The address of a Spark master to which the driver could not connect. None if there is
        none, and None again after the Spark application has started.
        """
        self._on_spark = on_spark
        self._is_folded = False
        self._level = logging.INFO

    def reading(self, lines: Iterator[str]) -> Iterator[str]:
        """Read the lines of a driver, and yield the lines for the task's log."""
        for line in lines:
            yield from (text for _, text in self.readable(line))
        yield from (text for _, text in self.rest())

    def readable(self, line: str) -> Iterator[tuple[int, str]]:
        """Read the next line; yield the lines for the task's log, each with its level.

        If a master does not answer, the log has one line about it, and Spark's own messages in a
        collapsed group.
        """
        text = self._read(line)
        if not self._is_folded and self.unanswered is not None:
            silent = f"Spark's master {self.unanswered} does not answer; Spark tries for a minute"
            yield logging.INFO, silent
            yield logging.INFO, _FOLD
        elif self._is_folded and self.unanswered is None:
            yield logging.INFO, _UNFOLD
        self._is_folded = self.unanswered is not None
        yield self._level, text

    def rest(self) -> Iterator[tuple[int, str]]:
        """Yield the lines for the task's log that follow the last line of the driver."""
        if self._is_folded:
            self._is_folded = False
            yield logging.INFO, _UNFOLD

    def report_spark(self, application: dict[str, Any]) -> None:
        """Pass the Spark application to ``on_spark``."""
        if self._on_spark is not None:
            self._on_spark(application)

    def _read(self, line: str) -> str:
        self._level = logging.INFO
        if (found := _marked(LOG, line)) is not None:
            self._level = logging.getLevelNamesMapping().get(str(found.get("level")), logging.INFO)
            return str(found.get("text"))
        if (found := _marked(REPORT, line)) is not None:
            self.result = found
            return f"result: {found.get('reason') or found.get('message') or found}"
        if (found := _marked(SPARK, line)) is not None:
            self.unanswered = None if found.get("application_id") else self.unanswered
            self.report_spark(found)
            where = f" at {found['ui']}" if found.get("ui") else ""
            return f"Spark application {found.get('application_id')}{where}"
        if (found := _marked(PROGRESS, line)) is not None:
            return _progress_text(found)
        if (silent := _UNANSWERED.search(line)) is not None:
            self.unanswered = silent[1]
        return line


@contextmanager
def progress_as_sentences() -> Iterator[None]:
    """Log the progress of a job in this process as sentences, instead of JSON."""
    log = logging.getLogger("spark_jobs.runtime.progress")

    def reworded(record: logging.LogRecord) -> bool:
        record.msg, record.args = _progress_text(json.loads(record.getMessage())), ()
        return True

    log.addFilter(reworded)
    try:
        yield
    finally:
        log.removeFilter(reworded)


def _progress_text(progress: Mapping[str, Any]) -> str:
    """Return a sentence such as ``shop.orders, compact: 3 of 6 units done``."""
    about = ", ".join(str(progress[name]) for name in ("table", "step") if progress.get(name))
    done = f"{progress.get('done')} of {progress.get('total')} {progress.get('unit', '')}".rstrip()
    return f"{about}: {done} done" if about else done


def _marked(marker: str, line: str) -> dict[str, Any] | None:
    """Return the JSON object after a marker; None if there is no marker or no complete object.

    The marker may be anywhere in a line, because a driver's two streams share one pipe.
    """
    at = line.find(marker)
    if at < 0:
        return None
    try:
        found = json.loads(line[at + len(marker) :])
    except ValueError:
        _log.warning(
            "ignored a line with %s in the output of the driver, because its JSON cannot be read: "
            "the driver's stdout and stderr may be mixed in this line",
            marker.strip(),
        )
        return None
    return found if isinstance(found, dict) else None
