# SPDX-License-Identifier: Apache-2.0
"""Airflow's hook for spark-submit, with additions for tasks that commit.

No process outlives its task, the master is never guessed, secrets are passed only in the
environment, and ``JobOutput`` reads the job's output. For each method of Airflow that is overridden
here, a contract test fails when Airflow changes the method.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from airflow_provider_lake.compat import AirflowFailException
from airflow_provider_lake.jobs.job_output import JobOutput
from airflow_provider_lake.jobs.prepared_job import job_file
from airflow_provider_lake.spark import launch
from airflow_provider_lake.spark.master import find_spark_submit, is_on_this_machine
from airflow_provider_lake.spark.process_tree import ProcessTree

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["LakeSparkSubmitHook", "Supervise"]

Supervise: TypeAlias = Callable[[list[str], Mapping[str, str]], NoReturn]
"""Starts a command in an environment under a supervisor, and defers the task."""

# Airflow kills a task five seconds after it has asked the task to end.
_GRACE_SECONDS = 3.0
_KNOWN_MASTER = re.compile(r"local(\[.*\])?|yarn.*|(spark|k8s|mesos)://.+")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


class LakeSparkSubmitHook(SparkSubmitHook):
    """One run of spark-submit, from the connection to the end of the last process.

    Raises ``AirflowFailException`` for an unknown master, for deploy mode ``cluster`` on a
    standalone cluster, and for Kubernetes without Airflow's Kubernetes provider.
    """

    def __init__(
        self,
        *,
        connection: Connection,
        process_env: Mapping[str, str],
        output: JobOutput,
        before_submit: Callable[[], None],
        supervise: Supervise | None = None,
        **stock: Any,
    ) -> None:
        self._output = output
        self._supervise = supervise
        self._before_submit = before_submit
        self.was_killed = False
        self._reported: str | None = None
        self._spark = connection
        self._process_env = dict(process_env)
        try:
            super().__init__(**stock)
        except (NameError, RuntimeError) as reason:  # Airflow's hook misses an import
            raise AirflowFailException(
                "Spark on Kubernetes needs Airflow's Kubernetes provider: run "
                "pip install apache-airflow-providers-cncf-kubernetes"
            ) from reason
        self._application_args = [str(word) for word in self._application_args or ()]
        if not _KNOWN_MASTER.fullmatch(self.master):
            raise AirflowFailException(
                f"Spark connection {self._conn_id!r} has an unknown master {self.master!r}: "
                "write local[2], spark://host:7077, k8s://… or yarn"
            )
        if self.master.startswith("spark:") and self.is_driver_elsewhere:
            raise AirflowFailException(
                "a standalone Spark cluster does not support deploy mode 'cluster' for Python: set "
                f"deploy mode 'client' in Spark connection {self._conn_id!r}, or pass "
                "deploy_mode='client' to the operator of this task"
            )
        if is_on_this_machine(self.master):
            self._conf = {**_settings_here(), **self._conf}

    @property
    def master(self) -> str:
        """The Spark master."""
        return str(self._connection["master"])

    @property
    def is_driver_elsewhere(self) -> bool:
        """True if the driver runs on the cluster, not on this machine."""
        return bool(self._connection["deploy_mode"] == "cluster")

    @property
    def has_namespace(self) -> bool:
        """True if the connection has the Kubernetes namespace of its drivers, without which a
        trigger cannot ask for their state.
        """
        return bool(self._connection.get("namespace"))

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Delete the result file of an earlier attempt, then submit and wait. Return the id of the
        driver; None if Airflow's hook has found no id.

        If the hook was created with ``supervise`` and the driver runs on this machine, start the
        driver under a supervisor instead, and defer the task.
        """
        self._before_submit()
        if self._supervise is not None and not self.is_driver_elsewhere:
            command = self._command(application)
            self._supervise(command, self._env or {})
        try:
            return super().submit(application, **kwargs)
        finally:
            if self._submit_sp is not None and self._submit_sp.stdout is not None:
                self._submit_sp.stdout.close()  # Airflow's code never closes it

    def on_kill(self) -> None:
        """End spark-submit with all of its descendants, and a driver on a cluster."""
        self.was_killed = True
        started = ProcessTree(self._submit_sp)
        if not self.is_driver_elsewhere:
            started.terminate(_GRACE_SECONDS)
        super().on_kill()
        started.terminate(_GRACE_SECONDS)

    def get_connection(self, conn_id: str) -> Connection:  # type: ignore[override]
        """Return the connection that this hook was created with. Airflow would look the connection
        up again, and hide a failure of this lookup.
        """
        return self._spark

    def _resolve_connection(self) -> dict[str, Any]:
        self.spark_binary = self.spark_binary or self._binary_of_connection()
        return super()._resolve_connection()

    def _binary_of_connection(self) -> str:
        """Return the path of the connection's ``spark-binary``. If there is none, or if it is not
        found, return the path of ``spark-submit``.
        """
        named = self._spark.extra_dejson.get("spark-binary")
        found = shutil.which(named) if named and named != "spark-submit" else None
        return found or find_spark_submit()

    def _build_spark_submit_command(self, application: str) -> list[str]:
        command = self._command(application)
        return [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *command]

    def _command(self, application: str) -> list[str]:
        command: list[str] = super()._build_spark_submit_command(application)
        # Set only now, because Airflow's code may turn env_vars into arguments.
        self._env = {**_driver_env(self.master), **self._process_env, **(self._env or {})}
        return command

    def _build_spark_common_args(self) -> list[str]:
        return [str(word) for word in super()._build_spark_common_args()]

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(self._noticing(self._output.reading(itr)))

    def _noticing(self, lines: Iterator[str]) -> Iterator[str]:
        """Yield ``lines`` unchanged, and report the application once Airflow's code has found its
        id.
        """
        for line in lines:
            yield line
            self._report_application(self._yarn_application_id or self._kubernetes_application_id)

    def _start_yarn_application_status_tracking(self, application_id: str) -> None:
        self._report_application(
            application_id
        )  # a retry follows the application without any output
        super()._start_yarn_application_status_tracking(application_id)

    def report_driver(self, driver: str) -> None:
        """Report the driver to the task, if it is an application of YARN. Without this call, a
        retry that finds its driver reports no application: it does not run spark-submit, so there
        is no output with the application's id.
        """
        if self._is_yarn:
            self._report_application(driver)

    def _report_application(self, application_id: str | None) -> None:
        """Report the id of an application to the task, but only once. If the connection has YARN's
        address, also report the address of the application's web page.
        """
        if application_id is None or application_id == self._reported:
            return
        self._reported = application_id
        manager = self._spark.extra_dejson.get("yarn_resourcemanager_webapp_address")
        page = f"{str(manager).rstrip('/')}/cluster/app/{application_id}" if manager else None
        self._output.report_spark({"application_id": application_id, "ui": page})


def _settings_here() -> dict[str, str]:
    """Return the settings for a driver on this machine: a readable log, and no web page,
    because its port may be taken.
    """
    return {
        "spark.ui.enabled": "false",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={job_file('log4j2.properties').as_uri()}",
    }


def _driver_env(master: str) -> dict[str, str]:
    """Return the environment of the driver, which uses the Python of this process; remote executors
    use their own Python.
    """
    env = {"PYSPARK_DRIVER_PYTHON": sys.executable, "LAKE_WATCH_PARENT": "1"}
    if is_on_this_machine(master):
        env["PYSPARK_PYTHON"] = sys.executable
        env["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    return env
