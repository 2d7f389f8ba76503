# SPDX-License-Identifier: Apache-2.0
"""The metrics of tasks on tables; docs/metrics.md lists their names.

Airflow's settings choose StatsD, Datadog or OpenTelemetry, as for Airflow's own metrics.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_provider_lake.compat import AirflowSkipException, conf, metrics_sender

__all__ = ["count_outcome", "counting_failures"]

_log = logging.getLogger(__name__)

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_.-]")
_WRITTEN = {"rows": "rows_out", "files": "files_out", "bytes": "bytes_out"}
_REWRITTEN = {
    name: name for name in ("rows_in", "rows_out", "files_in", "files_out", "bytes_in", "bytes_out")
} | {"groups_refused": "conflicts"}
_REMOVED = {"removed_files": "files_removed", "removed_bytes": "bytes_removed"}
_CHANGED = {"rows": "rows_changed", "files_added": "files_out", "bytes_added": "bytes_out"}
_MAINTAINED = _REMOVED | {"files_in": "files_in", "files_out": "files_out"}
# The members of each job's report with the metrics to which they are added.
_SUMS: Mapping[str, Mapping[str, str]] = {
    "ingest": _WRITTEN,
    "commit": _WRITTEN,
    "lake_commit": _WRITTEN,
    "delete": _CHANGED,
    "update": _CHANGED,
    "compact": _REWRITTEN,
    "compact_database": _REWRITTEN,
    "changelog": _REWRITTEN,
    "rescale": _REWRITTEN,
    "expire_snapshots": _REMOVED,
    "remove_orphans": _REMOVED,
    "maintain": _MAINTAINED,
}


def count_outcome(result: Mapping[str, Any]) -> None:
    """Send the metrics of a finished job. Rows and files that an earlier attempt has published are
    not counted again.
    """
    with _sparing_the_task():
        metrics = _Metrics(result["job"], _subject_of(result))
        if (seconds := result.get("seconds")) is not None:
            metrics("timing", "duration", seconds * 1000)
        for name in ("skipped", "replayed"):
            if result.get(name):
                metrics("incr", name, 1)
        report = result.get("report") or {}
        if result["job"] == "health":
            metrics("gauge", "health_score", report["score"])
            lag = (report.get("snapshots") or {}).get("publication")
            if lag is not None:
                metrics("gauge", "unpublished_snapshots", lag["snapshots"])
        _count_work(metrics, result)


@contextmanager
def counting_failures(job: str, subject: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """Count an error of the block by its class, and the work that was finished before the error.

    A conflict is also counted as ``conflicts``. A skip is not counted. The error is raised again.
    """
    try:
        yield
    except AirflowSkipException:
        raise
    except Exception as reason:
        with _sparing_the_task():
            metrics = _Metrics(job, subject())
            metrics("incr", "failures", 1, error=type(reason).__name__)
            if _is_conflict(reason):
                metrics("incr", "conflicts", 1)
            # Count the finished part now: a retry neither repeats nor counts it.
            _count_work(metrics, getattr(reason, "result", None) or {})
        raise


def _count_work(metrics: _Metrics, result: Mapping[str, Any]) -> None:
    """Send the numbers of the published work, such as rows and files, unless an earlier attempt has
    published it.
    """
    if result.get("replayed"):
        return
    for subject, name, number in _sums(result, result.get("report") or {}):
        metrics.about(subject)("incr", name, number)


class _Metrics:
    """A sender of metrics with tags. If Airflow's ``legacy_names_on`` is set, it also sends each
    metric under a name that contains the values of the tags.
    """

    def __init__(self, job: str, subject: Mapping[str, str]) -> None:
        self._job = job
        self._subject = subject
        self._in_names = conf.getboolean("metrics", "legacy_names_on", fallback=True)

    def about(self, subject: Mapping[str, str]) -> _Metrics:
        """Return a sender for another table of the same job."""
        return self if subject == self._subject else _Metrics(self._job, subject)

    def __call__(self, kind: str, name: str, value: float, **more: str) -> None:
        send: Callable[..., None] = getattr(metrics_sender(), kind)
        send(f"lake.{name}", value, tags={"job": self._job, **self._subject, **more})
        if self._in_names:
            whole = ".".join(["lake", self._job, *self._subject.values(), name])
            send(_NOT_IN_NAMES.sub("_", whole), value)


def _subject_of(result: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(result[name]) for name in ("table", "database") if name in result}


def _sums(
    result: Mapping[str, Any], report: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, str], str, int]]:
    """Yield the tags, name and value of each number of published work. A dry run yields none."""
    if not report:
        return
    for subject, part in _parts(result, report):
        numbers = {name: part.get(key) for key, name in _SUMS.get(result["job"], {}).items()}
        numbers["commit_retries"] = part.get("attempts", 1) - 1
        for name, number in numbers.items():
            if number:
                yield subject, name, number


def _parts(
    result: Mapping[str, Any], report: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, str], Mapping[str, Any]]]:
    """Yield each report that has numbers, with its table or database.

    A stream of several batches yields none, because it has only the report of its last batch.
    """
    subject, job = _subject_of(result), result["job"]
    if job == "compact_database":
        for each in report["tables"]:
            if (each["report"] or {}).get("snapshot_ids"):
                yield {"table": each["table"]}, each["report"]
    elif job == "maintain":
        tables = report.get("tables", [{**subject, "report": report}])
        for each in tables:
            if each["report"] is not None and not each["report"]["dry_run"]:
                yield {"table": each["table"]}, each["report"]
    elif job == "rescale":
        for each in report["partitions"]:
            if each["outcome"] == "rescaled":
                yield subject, each
    elif job == "expire_snapshots":
        if not report["dry_run"]:
            files = sum(report["files"].values())
            yield subject, {"removed_files": files, "removed_bytes": report["bytes"]}
    elif report.get("batches", 1) == 1 and (
        result.get("snapshot_id") is not None or report.get("dry_run") is False
    ):
        yield subject, report


def _is_conflict(reason: Exception) -> bool:
    from lakeformat import CommitConflictError

    return isinstance(reason, CommitConflictError) or getattr(reason, "is_conflict", False)


@contextmanager
def _sparing_the_task() -> Iterator[None]:
    """Log an error of the block as a warning: a failed metric must not fail the task."""
    try:
        yield
    except Exception as reason:  # noqa: BLE001 - a backend of metrics may raise anything
        _log.warning(
            "metrics of this task were not sent (%s: %s); the task continues. Check Airflow's "
            "settings in the section [metrics]",
            type(reason).__name__,
            reason,
        )
