# SPDX-License-Identifier: Apache-2.0
"""The differences between the supported versions of Airflow, from 3.1 on; no other module depends
on the version.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

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

    _IS_3_1 = False
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

    _IS_3_1 = True

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
    "has_partition_keys",
    "has_teams",
    "in_thread",
    "is_resolved_later",
    "metrics_sender",
    "readable_connections",
    "state_store_of",
    "team_column",
    "with_form",
]

_Hook = TypeVar("_Hook")

_Result = TypeVar("_Result")

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


def with_form(hook: type[_Hook]) -> type[_Hook]:
    """Return the hook. In Airflow 3.1, add the method that returns the connection form.

    Newer versions read the form from the metadata of the provider, and warn if the method exists.
    """
    if _IS_3_1:
        hook.get_ui_field_behaviour = staticmethod(_form)  # type: ignore[attr-defined]
    return hook


def _form() -> dict[str, Any]:
    """Return the connection form for Airflow 3.1: its field ``extra`` takes all options."""
    from airflow_provider_lake.provider_info import get_provider_info

    form = get_provider_info()["connection-types"][0]["ui-field-behaviour"]
    hidden = [name for name in form["hidden-fields"] if name != "extra"]
    return {
        "hidden_fields": hidden,
        "relabeling": form["relabeling"],
        "placeholders": form["placeholders"],
    }


def is_resolved_later(value: object) -> bool:
    """Return True for a value that Airflow replaces when the task runs.

    Examples are the result of a task, an argument of a mapped group, a parameter of the DAG, and a
    value in Airflow's ``literal()``. Their common class is internal to Airflow, so the value is
    recognised by two of its methods.
    """
    kind = type(value)
    return callable(getattr(kind, "iter_references", None)) and callable(
        getattr(kind, "resolve", None)
    )


def has_teams() -> bool:
    """Return True in Airflow's multi-team mode, which needs Airflow 3.2 or newer."""
    return bool(conf.getboolean("core", "multi_team", fallback=False))


def team_column(connections: Any) -> Any:
    """Return the SQL column with the team of each connection; NULL before Airflow 3.2."""
    from sqlalchemy import null

    return getattr(connections, "team_name", null())


def readable_connections(manager: Any, user: Any, team_of: Mapping[str, str | None]) -> set[str]:
    """Return the ids of the connections in ``team_of`` that a user may read. ``team_of`` has the
    team of each connection, or None.

    Since Airflow 3.2 the auth manager filters all connections of a team in one call. In Airflow 3.1
    it has one call for each connection.
    """
    if not hasattr(manager, "filter_authorized_connections"):
        from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails

        asked = {conn_id: ConnectionDetails(conn_id=conn_id) for conn_id in team_of}
        may_read = manager.is_authorized_connection
        return {each for each in asked if may_read(method="GET", user=user, details=asked[each])}
    readable: set[str] = set()
    for team in {*team_of.values()}:
        of_team = {conn_id for conn_id, owner in team_of.items() if owner == team}
        readable |= manager.filter_authorized_connections(
            conn_ids=of_team, user=user, team_name=team
        )
    return readable


def find_in_backend(backend: Any, conn_id: str, team: str | None) -> Any:
    """Return the connection that a secrets backend has for an id; None if it has none.

    The team is passed only to a backend that accepts it.
    """
    taken = inspect.signature(backend.get_connection).parameters
    takes_team = "team_name" in taken or any(
        each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values()
    )
    more = {"team_name": team} if takes_team else {}
    return backend.get_connection(conn_id=conn_id, **more)


def has_partition_keys(event: object) -> bool:
    """Return True if the event of an outlet can have partition keys: since Airflow 3.3."""
    return hasattr(event, "add_partitions")


def state_store_of(watcher: Any) -> Any:
    """Return the state store that keeps the position of a watcher; None before Airflow 3.3."""
    return getattr(watcher, "asset_state_store", None)


async def in_thread(call: Callable[..., _Result], *arguments: Any) -> _Result:
    """Run a blocking call, which may ask Airflow for a connection, in a thread; return its result.

    In Airflow 3.1, requests from a thread of ``asyncio.to_thread`` mix with those of the triggerer
    itself, which then ends with ``Response read out of order``.
    """
    from asgiref.sync import sync_to_async

    return await sync_to_async(call, thread_sensitive=False)(*arguments)


def metrics_sender() -> Any:
    """Return the object with the functions that send metrics: ``incr``, ``gauge`` and
    ``timing``.
    """
    try:
        from airflow.sdk.observability import stats
    except ImportError:  # Airflow 3.1
        from airflow.stats import Stats

        return Stats
    return stats if hasattr(stats, "incr") else stats.Stats  # Airflow 3.2 has only the class
