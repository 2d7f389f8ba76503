# SPDX-License-Identifier: Apache-2.0
"""Spark for a function that runs in the process of its task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_lake.compat import AirflowFailException
from airflow_provider_lake.spark.master import DEFAULT_SPARK_CONNECTION, spark_connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_lake.hooks.lake import LakeHook

__all__ = ["spark_here"]


@contextmanager
def spark_here(
    name: str, hook: LakeHook, conn_id: str | None, conf: Mapping[str, Any] | None
) -> Iterator[SparkSession]:
    """Yield a Spark session in which the lake is registered, and stop it after the block. This
    process is the driver. ``name`` is the name of the Spark application.

    Raises ``AirflowFailException`` for a connection that cannot be used.
    """
    master = _master(conn_id or DEFAULT_SPARK_CONNECTION)
    from spark_jobs import register
    from spark_jobs.runtime.spark_session import start_session

    session = start_session(name, master=master, conf=conf)
    try:
        yield register(session, hook.warehouse, hook.catalog_options)
    finally:
        session.stop()


def _master(conn_id: str) -> str:
    """Return the Spark master of a connection, after ``LakeSparkSubmitHook`` has checked it.

    Raise ``AirflowFailException`` for a wrong connection, and for deploy mode ``cluster``, in which
    the driver is not this process.
    """
    from airflow_provider_lake.jobs.job_output import JobOutput
    from airflow_provider_lake.spark.submit import LakeSparkSubmitHook

    hook = LakeSparkSubmitHook(
        connection=spark_connection(conn_id),
        process_env={},
        output=JobOutput(),
        before_submit=lambda: None,
        conn_id=conn_id,
    )
    if hook.is_driver_elsewhere:
        raise AirflowFailException(
            f"Spark connection {conn_id!r} has deploy mode 'cluster', but for a Python function "
            "with argument 'spark' the Spark driver is the task's own process: use a connection "
            "with deploy mode 'client'"
        )
    return hook.master
