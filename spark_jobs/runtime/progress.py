# SPDX-License-Identifier: Apache-2.0
"""Reports the progress of a job: as lines on standard output, or in the log of the calling
process.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["PROGRESS_MARKER", "progress_lines", "report_compaction", "report_progress"]

PROGRESS_MARKER = "LAKE_PROGRESS "
"""The beginning of a progress line on standard output."""

_log = logging.getLogger("spark_jobs.runtime.progress")


def report_progress(done: int, total: int, unit: str, **more: Any) -> None:
    """Report that ``done`` of ``total`` units are done. ``unit`` is a plural such as ``files``;
    ``more`` are further members of the report.
    """
    _log.info(json.dumps({"done": done, "total": total, "unit": unit, **more}))


def report_compaction(progress: Any) -> None:
    """Report the progress of a compaction, in units and bytes."""
    sizes = {"bytes_done": progress.bytes_done, "bytes": progress.bytes}
    report_progress(progress.done, progress.units, "units", table=progress.table, **sizes)


@contextmanager
def progress_lines() -> Iterator[None]:
    """Print the progress of the block as marked lines."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(f"{PROGRESS_MARKER}%(message)s"))
    before, propagates = _log.level, _log.propagate
    _log.setLevel(logging.INFO)
    _log.propagate = False
    _log.addHandler(handler)
    try:
        yield
    finally:
        _log.removeHandler(handler)
        _log.propagate = propagates
        _log.setLevel(before)
