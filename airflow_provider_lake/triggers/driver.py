# SPDX-License-Identifier: Apache-2.0
"""Waits for a Spark driver on YARN or Kubernetes, and ends the driver when its task is killed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_lake.compat import in_thread
from airflow_provider_lake.spark.cluster_driver import UnreachableClusterError, driver_of
from airflow_provider_lake.spark.master import spark_connection
from airflow_provider_lake.triggers.process import TIMED_OUT

if TYPE_CHECKING:
    from airflow_provider_lake.spark.cluster_driver import ClusterDriver, Manager

__all__ = ["DRIVER_ENDED", "LakeDriverTrigger"]

DRIVER_ENDED = "driver_ended"

_MOST_FAILURES = 30
"""The cluster's manager may be restarting, so the task fails only after this number of checks in a
row without an answer.
"""
_log = logging.getLogger(__name__)


class LakeDriverTrigger(BaseTrigger):
    """Fires once, when the wait for a driver on a cluster is over.

    The payload is ``{"status": "driver_ended", "failure": …}``. ``failure`` is None if the driver
    succeeded. It is the reason if the driver failed, or if 30 checks in a row got no answer. If the
    trigger has ended the driver at ``ends_at``, in epoch seconds, the payload is
    ``{"status": "timed_out"}``. The result of the driver is in the task's ``result_folder``.
    Addresses and credentials come from the connection, never from an argument.
    """

    def __init__(
        self,
        *,
        manager: Manager,
        driver: str,
        spark_conn_id: str,
        ends_at: float | None = None,
        poll_interval: float = 10,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.manager = manager
        self.driver = driver
        self.spark_conn_id = spark_conn_id
        self.ends_at = ends_at
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path, and the arguments with which the triggerer builds this trigger."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "manager": self.manager,
            "driver": self.driver,
            "spark_conn_id": self.spark_conn_id,
            "ends_at": self.ends_at,
            "poll_interval": self.poll_interval,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask the cluster for the state of the driver every ``poll_interval`` seconds, in a thread;
        yield one event.
        """
        watch = _DriverWatch(self)
        while (found := await in_thread(watch.look)) is None:
            await asyncio.sleep(self.poll_interval)
        yield TriggerEvent(found)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """End the driver after a user has cleared the task, or marked it as success or failed.

        Airflow calls this method from version 3.3 on.
        """
        await in_thread(_DriverWatch(self).end)


class _DriverWatch:
    def __init__(self, asked: LakeDriverTrigger) -> None:
        self._asked = asked
        self._driver: ClusterDriver | None = None
        self._seen = ""
        self._failures = 0

    def look(self) -> dict[str, Any] | None:
        """Return the payload of the trigger's event once the driver has ended, the time limit is
        reached, or ``_MOST_FAILURES`` checks in a row got no answer; until then, return None.
        """
        ends_at = self._asked.ends_at
        if ends_at is not None and time.time() >= ends_at:
            self.end()
            return {"status": TIMED_OUT}
        try:
            state = self._opened().state()
        except (UnreachableClusterError, ConnectionError) as reason:
            return self._failed(reason)
        self._failures = 0
        if state.name != self._seen:
            _log.info("driver %s: %s", self._asked.driver, state.name)
            self._seen = state.name
        return {"status": DRIVER_ENDED, "failure": state.failure} if state.has_ended else None

    def end(self) -> None:
        """End the driver. If the cluster does not answer, warn that you must end the driver."""
        try:
            self._opened().end()
        except (UnreachableClusterError, ConnectionError) as reason:
            _log.warning(
                "driver %s could not be ended (%s): end it on the cluster",
                self._asked.driver,
                reason,
            )
        else:
            _log.info("asked the cluster to end driver %s", self._asked.driver)

    def _opened(self) -> ClusterDriver:
        if self._driver is None:
            connection = spark_connection(self._asked.spark_conn_id)
            self._driver = driver_of(self._asked.manager, self._asked.driver, connection)
        return self._driver

    def _failed(self, reason: Exception) -> dict[str, Any] | None:
        self._failures += 1
        if self._failures < _MOST_FAILURES:
            _log.warning(
                "the trigger got no state of driver %s, and asks again: %s",
                self._asked.driver,
                reason,
            )
            return None
        text = f"the cluster has sent no state of driver {self._asked.driver} for {_MOST_FAILURES}"
        return {"status": DRIVER_ENDED, "failure": f"{text} checks in a row: {reason}"}
