# SPDX-License-Identifier: Apache-2.0
"""Prints the log of a job as marked lines, so that the calling process can log them with their
levels.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LOG_LEVEL_VARIABLE", "LOG_MARKER", "log_lines"]

LOG_MARKER = "LAKE_LOG "
"""The beginning of a log line on standard output."""
LOG_LEVEL_VARIABLE = "LAKE_LOG_LEVEL"
"""The environment variable with the lowest level that the calling process logs, such as
``INFO``.
"""


@contextmanager
def log_lines() -> Iterator[None]:
    """Print log messages of the block as marked lines, if ``LOG_LEVEL_VARIABLE`` is set."""
    level = os.environ.get(LOG_LEVEL_VARIABLE)
    if level is None:
        yield
        return
    root, handler = logging.getLogger(), logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Marked())
    before = root.level
    root.setLevel(level)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


class _Marked(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the marker and the record as JSON in one line, even for a message with a trace."""
        line = {"level": record.levelname, "logger": record.name, "text": super().format(record)}
        return f"{LOG_MARKER}{json.dumps(line)}"
