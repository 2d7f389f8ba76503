# SPDX-License-Identifier: Apache-2.0
"""The ``SparkSubmitOperator`` that a task creates to submit its job."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_provider_lake.spark.cluster_driver import yarn_address
from airflow_provider_lake.spark.submit import LakeSparkSubmitHook, Supervise

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from airflow_provider_lake.jobs.job_output import JobOutput
    from airflow_provider_lake.spark.cluster_driver import Manager

__all__ = ["LakeSparkSubmission", "WaitForDriver"]

WaitForDriver: TypeAlias = Callable[["Manager", float, str], NoReturn]
"""Defers the task until a driver has ended. Takes the cluster manager (``yarn`` or ``kubernetes``),
the seconds between two polls, and the driver's id.
"""

# The same least intervals as in SparkSubmitOperator.
_YARN, _KUBERNETES = 10, 20


class LakeSparkSubmission(SparkSubmitOperator):
    """Submits as ``SparkSubmitOperator`` does, with the hook of this provider.

    This operator is not a task of a DAG, and its arguments are already rendered. Depending on the
    master and the deploy mode, it waits for spark-submit or follows a driver on the cluster. A
    retry of the task finds such a driver again.
    """

    _hook: LakeSparkSubmitHook | None

    def __init__(
        self,
        *,
        connection: Connection,
        process_env: Mapping[str, str],
        output: JobOutput,
        before_submit: Callable[[], None],
        supervise: Supervise | None = None,
        asked: str = "",
        **stock: Any,
    ) -> None:
        super().__init__(**stock)
        self._connection = connection
        self._process_env = process_env
        self._output = output
        self._before_submit = before_submit
        self._supervise = supervise
        self._wait: Callable[[str], NoReturn] | None = None
        # A cleared task has another request, so it submits again instead of rejoining.
        self.external_id_key = f"{type(self).external_id_key}:{asked}"
        self._K8S_DRIVER_STATUS_KEY = f"{type(self)._K8S_DRIVER_STATUS_KEY}:{asked}"

    @property
    def was_begun(self) -> bool:
        """True if the hook exists; only then may a process have been started."""
        return self._hook is not None

    @property
    def was_killed(self) -> bool:
        """True if this task has ended its own driver."""
        return self._hook is not None and self._hook.was_killed

    def submit_and_wait(self, context: Context) -> None:
        """Run ``SparkSubmitOperator.execute``, without Airflow's warning about a task inside a
        task.
        """
        inspect.unwrap(SparkSubmitOperator.execute)(self, context)

    def wait_with(self, wait: WaitForDriver) -> str | None:
        """Let ``poll_until_complete`` call ``wait``, which defers the task, and return None. If no
        trigger can wait for the driver, return the reason.
        """
        hook = self._get_hook()
        if hook.master.startswith("yarn"):
            return self._wait_on_yarn(wait)
        if hook.master.startswith("k8s:"):
            if not hook.has_namespace:
                return f"connection {self._conn_id!r} names no namespace of Kubernetes"
            self._track_driver_via_k8s_api = True
            self._wait = partial(wait, "kubernetes", max(self._status_poll_interval, _KUBERNETES))
            return None
        return f"a trigger sees drivers on YARN and Kubernetes, not on master {hook.master!r}"

    def _wait_on_yarn(self, wait: WaitForDriver) -> str | None:
        given = self._connection.extra_dejson
        if self._yarn_rm_auth is not None or given.get("principal") or self.principal:
            return "a trigger has no credentials for YARN with Kerberos or yarn_rm_auth"
        if yarn_address(self._connection) is None:
            return f"connection {self._conn_id!r} has no yarn_resourcemanager_webapp_address"
        self._yarn_track_via_rm_api = True
        self._wait = partial(wait, "yarn", max(self._status_poll_interval, _YARN))
        return None

    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Wait for the driver with the id ``external_id``. If ``wait_with`` found that a trigger
        can wait, defer the task instead.
        """
        if self._wait is not None:
            if self._hook is not None:
                self._hook.report_driver(external_id)
            self._wait(external_id)
        super().poll_until_complete(external_id, context)

    def run_post_submit_commands(self) -> None:
        """Run the task's ``post_submit_commands`` after the end of a driver for which a trigger has
        waited.
        """
        self._get_hook()._run_post_submit_commands()

    def _get_hook(self) -> LakeSparkSubmitHook:
        return LakeSparkSubmitHook(
            connection=self._connection,
            process_env=self._process_env,
            output=self._output,
            before_submit=self._before_submit,
            supervise=self._supervise,
            conf=self.conf,
            conn_id=self._conn_id,
            files=self.files,
            py_files=self.py_files,
            archives=self._archives,
            driver_class_path=self.driver_class_path,
            jars=self.jars,
            java_class=self._java_class,
            packages=self.packages,
            exclude_packages=self.exclude_packages,
            repositories=self._repositories,
            total_executor_cores=self._total_executor_cores,
            executor_cores=self._executor_cores,
            executor_memory=self._executor_memory,
            driver_memory=self._driver_memory,
            keytab=self.keytab,
            principal=self.principal,
            proxy_user=self.proxy_user,
            name=self.name,
            num_executors=self._num_executors,
            status_poll_interval=self._status_poll_interval,
            application_args=self.application_args,
            env_vars=self.env_vars,
            verbose=self._verbose,
            spark_binary=self._spark_binary,
            properties_file=self.properties_file,
            yarn_queue=self._yarn_queue,
            deploy_mode=self._deploy_mode,
            use_krb5ccache=self._use_krb5ccache,
            post_submit_commands=self.post_submit_commands,
            track_driver_via_k8s_api=self._track_driver_via_k8s_api,
            yarn_track_via_rm_api=self._yarn_track_via_rm_api,
            yarn_rm_auth=self._yarn_rm_auth,
        )
