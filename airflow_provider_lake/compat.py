# SPDX-License-Identifier: Apache-2.0
"""The differences between the supported versions of Airflow, 3.1 to 3.x; other modules have none.

Only public modules of Airflow are used, also where an internal one would be shorter.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    from airflow.sdk.configuration import conf
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        AirflowTaskTimeout,
        AirflowTimetableInvalid,
        XComNotFound,
    )
except ImportError:  # Airflow 3.1
    from airflow.configuration import conf
    from airflow.exceptions import (  # type: ignore[attr-defined, no-redef]
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        AirflowTaskTimeout,
        AirflowTimetableInvalid,
        XComNotFound,
    )

if TYPE_CHECKING:
    from airflow.sdk import CronDataIntervalTimetable
    from airflow.sdk.bases.decorator import determine_kwargs
    from airflow.sdk.plugins_manager import AirflowPlugin

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowPlugin",
    "AirflowSkipException",
    "AirflowTaskTimeout",
    "AirflowTimetableInvalid",
    "CronDataIntervalTimetable",
    "XComNotFound",
    "conf",
    "determine_kwargs",
    "find_in_backend",
    "has_teams",
    "is_resolved_later",
    "metrics_sender",
    "state_store_of",
    "team_column",
]


# Names that only some users need, each with its module now and in Airflow 3.1.
_MOVED = {
    "AirflowPlugin": ("airflow.sdk.plugins_manager", "airflow.plugins_manager"),
    "CronDataIntervalTimetable": ("airflow.sdk", "airflow.timetables.interval"),
    "determine_kwargs": ("airflow.sdk.bases.decorator", "airflow.utils.operator_helpers"),
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    now, before = _MOVED[name]
    try:
        return getattr(import_module(now), name)
    except (ImportError, AttributeError):
        return getattr(import_module(before), name)


def is_resolved_later(value: object) -> bool:
    """Return True for a value that Airflow replaces when the task runs.

    Examples are the result of a task, an argument of a mapped group, a parameter of the DAG, and a
    literal. Their common class is internal, so its two methods are looked up instead.
    """
    kind = type(value)
    return callable(getattr(kind, "iter_references", None)) and callable(
        getattr(kind, "resolve", None)
    )


def has_teams() -> bool:
    """Return True in Airflow's multi-team mode, which exists since Airflow 3.2."""
    return bool(conf.getboolean("core", "multi_team", fallback=False))


def team_column(connections: Any) -> Any:
    """Return the column with the team of each connection; NULL before Airflow 3.2."""
    from sqlalchemy import null

    return getattr(connections, "team_name", null())


def find_in_backend(backend: Any, conn_id: str, team: str | None) -> Any:
    """Return what a secrets backend has for a connection id.

    A backend that was written before teams existed takes no team.
    """
    taken = inspect.signature(backend.get_connection).parameters
    takes_team = "team_name" in taken or any(
        each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values()
    )
    more = {"team_name": team} if takes_team else {}
    return backend.get_connection(conn_id=conn_id, **more)


def state_store_of(watcher: Any) -> Any:
    """Return the store that outlives a watcher; None before Airflow 3.3, which has none."""
    return getattr(watcher, "asset_state_store", None)


def metrics_sender() -> Any:
    """Return the functions that send metrics: ``incr``, ``gauge`` and ``timing``."""
    try:
        from airflow.sdk.observability import stats
    except ImportError:  # Airflow 3.1
        from airflow.stats import Stats

        return Stats
    return stats if hasattr(stats, "incr") else stats.Stats  # Airflow 3.2 has only the class
