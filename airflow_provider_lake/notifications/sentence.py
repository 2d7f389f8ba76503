# SPDX-License-Identifier: Apache-2.0
"""The text of a notification: its occasion, and the health of the table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from airflow_provider_lake.compat import AirflowException
from airflow_provider_lake.hooks.lake import LakeHook

__all__ = ["occasion_of", "table_health", "unknown_health"]

_log = logging.getLogger(__name__)


def occasion_of(context: Mapping[str, Any]) -> str:
    """Return the text for the occasion of a callback: the missed deadline, the task, or the DAG
    run.
    """
    run = context.get("dag_run")
    dag_id, run_id = (_member(run, name) for name in ("dag_id", "run_id"))
    if (deadline := context.get("deadline")) is not None:
        missed = _member(deadline, "deadline_time")
        return f"DAG {dag_id}, run {run_id}, missed its deadline {missed}"
    if (ti := context.get("ti")) is not None:
        mapped = f", map index {ti.map_index}" if getattr(ti, "map_index", -1) >= 0 else ""
        return f"Task {ti.task_id} of DAG {ti.dag_id}, run {ti.run_id}{mapped}"
    return f"DAG {dag_id}, run {run_id}"


def table_health(table: str, lake_conn_id: str | None) -> dict[str, Any]:
    """Return the verdict, the score, the reasons, and one sentence as ``finding``.

    If the health cannot be read, the values are those of ``unknown_health``.
    """
    try:
        report = LakeHook(lake_conn_id or LakeHook.default_conn_name).health(
            table, time_travel=False
        )
    except Exception as reason:  # noqa: BLE001 - people must be notified in any case
        _log.exception("the health of table %s cannot be read", table)
        return unknown_health(f"the health of table {table} is unknown: {_safe_text(reason)}")
    reasons = [str(each) for each in report.reasons]
    why = "; ".join(reasons) or "no problems found"
    verdict = str(report.verdict)
    return {
        "verdict": verdict,
        "score": report.score,
        "reasons": reasons,
        "finding": f"table {table} is {verdict}, score {report.score} of 100: {why}",
    }


def unknown_health(finding: str) -> dict[str, Any]:
    """Return the values for a table whose health cannot be read: verdict ``unknown``, no score and
    no reasons. All members are present, because a missing one could make a template fail.
    """
    return {"verdict": "unknown", "score": None, "reasons": [], "finding": finding}


def _safe_text(reason: Exception) -> str:
    """Return the class of an error and, if the error is of this library or of Airflow, its
    message: any other message may contain secrets.
    """
    from lakeformat import LakeError

    is_safe = isinstance(reason, LakeError | AirflowException)
    return f"{type(reason).__name__}: {reason}" if is_safe else type(reason).__name__


def _member(value: object, name: str) -> Any:
    """Return the member ``name`` of a DAG run or a deadline. In a deadline alert both are dicts."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
