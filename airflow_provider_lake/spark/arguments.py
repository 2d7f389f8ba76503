# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``SparkSubmitOperator``, for operators that work with or without Spark.

Importing ``SparkSubmitOperator`` takes several times longer than importing the operators of this
provider, because it imports the OpenLineage provider. So this module declares the arguments with
their types, and a contract test compares them with the original. ``submission.py`` creates a
``SparkSubmitOperator`` when a job is submitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from airflow.sdk import BaseOperator

from airflow_provider_lake.arguments.declared import argument_names
from airflow_provider_lake.arguments.task_arguments import TaskArguments

__all__ = ["SPARK_ARGUMENTS", "LakeSparkArguments"]


class LakeSparkArguments(BaseOperator):
    """Stores the arguments for spark-submit; ``SparkSubmitOperator`` documents most of them."""

    def __init__(
        self,
        *,
        application: str | None = None,
        conf: Mapping[str, Any] | None = None,
        files: str | None = None,
        py_files: str | None = None,
        archives: str | None = None,
        driver_class_path: str | None = None,
        jars: str | None = None,
        java_class: str | None = None,
        packages: str | None = None,
        exclude_packages: str | None = None,
        repositories: str | None = None,
        total_executor_cores: int | None = None,
        executor_cores: int | None = None,
        executor_memory: str | None = None,
        driver_memory: str | None = None,
        keytab: str | None = None,
        principal: str | None = None,
        proxy_user: str | None = None,
        name: str | None = None,
        num_executors: int | None = None,
        status_poll_interval: int | None = None,
        env_vars: Mapping[str, Any] | None = None,
        verbose: bool | None = None,
        spark_binary: str | None = None,
        properties_file: str | None = None,
        yarn_queue: str | None = None,
        deploy_mode: str | None = None,
        use_krb5ccache: bool | None = None,
        post_submit_commands: Sequence[str] | None = None,
        track_driver_via_k8s_api: bool | None = None,
        yarn_track_via_rm_api: bool | None = None,
        yarn_rm_auth: Any = None,
        openlineage_inject_parent_job_info: bool | None = None,
        openlineage_inject_transport_info: bool | None = None,
        durable: bool | None = None,
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.application = application
        self.conf = conf
        self.files = files
        self.py_files = py_files
        self.archives = archives
        self.driver_class_path = driver_class_path
        self.jars = jars
        self.java_class = java_class
        self.packages = packages
        self.exclude_packages = exclude_packages
        self.repositories = repositories
        self.total_executor_cores = total_executor_cores
        self.executor_cores = executor_cores
        self.executor_memory = executor_memory
        self.driver_memory = driver_memory
        self.keytab = keytab
        self.principal = principal
        self.proxy_user = proxy_user
        self.name = name
        self.num_executors = num_executors
        self.status_poll_interval = status_poll_interval
        self.env_vars = env_vars
        self.verbose = verbose
        self.spark_binary = spark_binary
        self.properties_file = properties_file
        self.yarn_queue = yarn_queue
        self.deploy_mode = deploy_mode
        self.use_krb5ccache = use_krb5ccache
        self.post_submit_commands = post_submit_commands
        self.track_driver_via_k8s_api = track_driver_via_k8s_api
        self.yarn_track_via_rm_api = yarn_track_via_rm_api
        self.yarn_rm_auth = yarn_rm_auth
        self.openlineage_inject_parent_job_info = openlineage_inject_parent_job_info
        self.openlineage_inject_transport_info = openlineage_inject_transport_info
        self.durable = durable

    def _spark_given(self) -> dict[str, Any]:
        """Return the arguments that are not None; ``SparkSubmitOperator`` has defaults for the
        rest.
        """
        values = {name: getattr(self, name) for name in SPARK_ARGUMENTS}
        return {name: value for name, value in values.items() if value is not None}


SPARK_ARGUMENTS = tuple(argument_names(LakeSparkArguments.__init__))
"""The names of the arguments, the same as in ``SparkSubmitOperator``."""
