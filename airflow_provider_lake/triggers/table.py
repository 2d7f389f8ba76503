# SPDX-License-Identifier: Apache-2.0
"""Checks a table at an interval until a condition is met, without a worker slot."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Collection
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lake.assets.change import ROW_KINDS, check_kinds
from airflow_provider_lake.assets.uri import split_table_name
from airflow_provider_lake.compat import in_thread
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.sensors.conditions import (
    Condition,
    SnapshotAdvanced,
    check_position,
    read_condition,
    write_condition,
)

__all__ = [
    "MET",
    "REFUSED",
    "LakeConditionTrigger",
    "LakeSnapshotTrigger",
    "check_watched",
    "look",
]

MET = "met"
REFUSED = "refused"
_log = logging.getLogger(__name__)


def look(hook: LakeHook, table: str, condition: Condition) -> dict[str, Any] | None:
    """Return the findings of ``condition`` about a table; None while the condition is not met.

    Return None also while the table does not exist or the storage does not answer. Raise any other
    error of the condition.
    """
    from lakeformat import AccessDeniedError, NotFoundError, UnavailableError

    try:
        return condition.check(table, hook.table(table))
    except AccessDeniedError:
        raise
    except (NotFoundError, UnavailableError) as reason:
        _log.warning("still waiting: %s", reason)
        return None


def check_watched(table: str, lake_conn_id: str, poll_interval: float) -> None:
    """Raise ``ValueError`` for an invalid table name or connection id, or an interval that is not a
    number of seconds above 0.
    """
    split_table_name(table)
    name, pause = _as_given(lake_conn_id), _as_given(poll_interval)
    if not isinstance(name, str) or not name:
        raise ValueError(f"lake_conn_id must be the id of a connection, got {lake_conn_id!r}")
    is_pause = isinstance(pause, int | float) and 0 < pause < math.inf
    if not is_pause or isinstance(pause, bool):
        raise ValueError(
            f"poll_interval must be a number of seconds above 0, got {poll_interval!r}"
        )


def _as_given(value: object) -> object:
    """Return the value unchanged, but as ``object`` for the type checker.

    A DAG's author may pass a value of any type. With the declared type, the type checker would call
    the check of the value needless.
    """
    return value


class LakeConditionTrigger(BaseTrigger):
    """Fires once, when a table meets a condition.

    The payload is ``{"status": "met", "found": {…}}`` with the findings of the condition. After an
    error, such as a damaged table, the payload is ``{"status": "refused", "reason": "…"}``.
    ``condition`` is written by ``write_condition``, and ``poll_interval`` is in seconds.
    """

    def __init__(
        self,
        *,
        table: str,
        condition: dict[str, Any],
        lake_conn_id: str = LakeHook.default_conn_name,
        poll_interval: float = 60,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.table = table
        self.condition = condition
        self.lake_conn_id = lake_conn_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path, and the arguments with which the triggerer builds this trigger."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "table": self.table,
            "condition": self.condition,
            "lake_conn_id": self.lake_conn_id,
            "poll_interval": self.poll_interval,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check the table every ``poll_interval`` seconds, in a thread; yield one event."""
        condition = read_condition(self.condition)
        hook = LakeHook(self.lake_conn_id)
        while True:
            try:
                found = await in_thread(look, hook, self.table, condition)
            except Exception as reason:  # noqa: BLE001 - the task raises it
                yield _event({"status": REFUSED, "reason": _error_text(reason)})
                return
            if found is not None:
                yield _event({"status": MET, "found": found})
                return
            await asyncio.sleep(self.poll_interval)


class LakeSnapshotTrigger(LakeConditionTrigger):
    """Fires once, when a table has a commit, by any program, after a given snapshot.

    Use this trigger in a task that defers itself. ``found`` in the payload has the keys that
    ``assets/change.py`` describes.

    :param table: the table, ``database.table``
    :param after_snapshot: a snapshot number, or a position such as ``"main/7"``
    :param kinds: the kinds of commits that count. Default: ``APPEND`` and ``OVERWRITE``
    :param changelog: wait for a commit of any kind, but only for one that published changelog rows.
        Only for Paimon tables
    :param lake_conn_id: connection of type ``lake``
    :param poll_interval: the seconds between two checks
    """

    def __init__(
        self,
        *,
        table: str,
        after_snapshot: int | str = 0,
        kinds: Collection[str] = ROW_KINDS,
        changelog: bool = False,
        lake_conn_id: str = LakeHook.default_conn_name,
        poll_interval: float = 60,
    ) -> None:
        check_watched(table, lake_conn_id, poll_interval)
        wanted = SnapshotAdvanced(
            after_snapshot=check_position("after_snapshot", after_snapshot),
            kinds=check_kinds(kinds),
            changelog=changelog,
        )
        super().__init__(
            table=table,
            condition=write_condition(wanted),
            lake_conn_id=lake_conn_id,
            poll_interval=poll_interval,
        )

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path, and the arguments with which the triggerer builds this trigger."""
        path, arguments = super().serialize()
        wanted = arguments.pop("condition")
        kept = {key: wanted[key] for key in ("after_snapshot", "kinds", "changelog")}
        return path, {**arguments, **kept}


def _event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]


def _error_text(reason: Exception) -> str:
    return f"{type(reason).__name__}: {reason}"
