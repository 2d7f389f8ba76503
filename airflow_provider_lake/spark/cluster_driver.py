# SPDX-License-Identifier: Apache-2.0
"""The driver of a Spark job on a cluster: reads its state and ends it through the cluster's REST
API.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import requests

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = [
    "ClusterDriver",
    "DriverState",
    "Manager",
    "UnreachableClusterError",
    "driver_of",
    "yarn_address",
]

Manager: TypeAlias = Literal["yarn", "kubernetes"]

_TIMEOUT_SECONDS = 10.0
_YARN_ENDED = ("FINISHED", "FAILED", "KILLED")
_NOT_FOUND = 404


class UnreachableClusterError(Exception):
    """The cluster gave no answer or omitted the driver's state, or its address is unknown."""


@dataclass(frozen=True, slots=True)
class DriverState:
    """The state of a driver in one answer of the cluster."""

    name: str
    """The cluster's name for the state, such as ``RUNNING``."""
    has_ended: bool
    failure: str | None = None
    """The reason of a failure; None for a driver that runs or has succeeded."""


class ClusterDriver(Protocol):
    """A driver that was submitted. Each method blocks for at most about ten seconds."""

    def state(self) -> DriverState:
        """Return the driver's state. Raise ``UnreachableClusterError`` if the cluster does not
        answer.
        """

    def end(self) -> None:
        """End the driver. Raise ``UnreachableClusterError`` if the cluster does not answer."""


def driver_of(manager: Manager, driver: str, connection: Connection) -> ClusterDriver:
    """Return the driver with the id that ``SparkSubmitOperator`` stores (``namespace:pod`` on
    Kubernetes).

    Raises ``UnreachableClusterError`` for YARN if the connection has no address of its resource
    manager.
    """
    if manager == "yarn":
        address = yarn_address(connection)
        if address is None:
            raise UnreachableClusterError(
                f"connection {connection.conn_id!r} has no yarn_resourcemanager_webapp_address: "
                "add it to the connection's extra"
            )
        return _YarnApplication(address, driver)
    namespace, _, pod = driver.partition(":")
    return _KubernetesPod(namespace, pod)


def yarn_address(connection: Connection) -> str | None:
    """Return the address of YARN's resource manager; None if the connection does not have it."""
    text = str(connection.extra_dejson.get("yarn_resourcemanager_webapp_address") or "").strip()
    if not text:
        return None
    return (text if "://" in text else f"http://{text}").rstrip("/")


@dataclass(frozen=True, slots=True)
class _YarnApplication:
    """An application of YARN, as in Hadoop's page "ResourceManager REST APIs"."""

    address: str
    application: str

    def state(self) -> DriverState:
        found = self._ask("GET", "")
        try:
            state, final = found["app"]["state"], found["app"]["finalStatus"]
            why = " ".join(str(found["app"].get("diagnostics") or "").split())
        except (KeyError, TypeError) as reason:
            raise UnreachableClusterError(
                f"the answer of {self.address} has no state of YARN application "
                f"{self.application}: {found}. Check yarn_resourcemanager_webapp_address of the "
                "connection"
            ) from reason
        if state not in _YARN_ENDED:
            return DriverState(state, has_ended=False)
        if state == "FINISHED" and final == "SUCCEEDED":
            return DriverState(state, has_ended=True)
        text = f"YARN application {self.application} ended as {state} with final status {final}"
        return DriverState(state, has_ended=True, failure=f"{text}: {why}" if why else text)

    def end(self) -> None:
        self._ask("PUT", "/state", {"state": "KILLED"})

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self.address}/ws/v1/cluster/apps/{self.application}{path}"
        try:
            answer = requests.request(method, url, json=body, timeout=_TIMEOUT_SECONDS)
            answer.raise_for_status()
            return answer.json()
        except requests.RequestException as reason:
            raise UnreachableClusterError(str(reason)) from reason


@dataclass(frozen=True, slots=True)
class _KubernetesPod:
    """The pod of a driver, read with the client of Airflow's Kubernetes provider."""

    namespace: str
    pod: str

    def state(self) -> DriverState:
        try:
            found = self._client().read_namespaced_pod(
                self.pod, self.namespace, _request_timeout=_TIMEOUT_SECONDS
            )
        except Exception as reason:
            if _is_not_found(reason):  # deleted after its end: the job's result decides
                return DriverState("deleted", has_ended=True)
            raise UnreachableClusterError(str(reason)) from reason
        phase = found.status.phase or "Pending"
        if phase == "Succeeded":
            return DriverState(phase, has_ended=True)
        if phase != "Failed":
            return DriverState(phase, has_ended=False)
        return DriverState(phase, has_ended=True, failure=self._failure(found.status))

    def end(self) -> None:
        try:
            self._client().delete_namespaced_pod(
                self.pod, self.namespace, _request_timeout=_TIMEOUT_SECONDS
            )
        except Exception as reason:
            if not _is_not_found(reason):
                raise UnreachableClusterError(str(reason)) from reason

    def _failure(self, status: Any) -> str:
        text = f"driver pod {self.pod} in namespace {self.namespace} failed"
        for container in status.container_statuses or ():
            ended = container.state and container.state.terminated
            if ended:
                return f"{text}: exit code {ended.exit_code}, {ended.reason}"
        return text

    @staticmethod
    def _client() -> Any:
        from airflow.providers.apache.spark.hooks import spark_submit

        stock: Any = spark_submit  # has its client only if Airflow's Kubernetes provider is there
        return stock.kube_client.get_kube_client()


def _is_not_found(reason: Exception) -> bool:
    return getattr(reason, "status", None) == _NOT_FOUND
