# SPDX-License-Identifier: Apache-2.0
"""Finds the Spark connection, and the program ``spark-submit``."""

from __future__ import annotations

import logging
import os
import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from airflow_provider_lake.compat import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = [
    "DEFAULT_SPARK_CONNECTION",
    "find_spark_submit",
    "is_on_this_machine",
    "spark_connection",
]

DEFAULT_SPARK_CONNECTION = "spark_default"

_LOCAL_MASTER = "local[*]"
_MASTER_TYPES = ("spark", "k8s", "yarn", "local", "mesos")
_log = logging.getLogger(__name__)


def spark_connection(conn_id: str) -> Connection:
    """Return the Spark connection. If ``spark_default`` does not exist, return one that runs Spark
    on this machine.

    Raises ``AirflowFailException`` for any other missing connection and for a wrong type. If the
    lookup fails, raises ``InvalidRequestError``, ``UnavailableError`` or ``ConnectionError``.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        from airflow_provider_lake.hooks.absent_connection import refuse_unreadable  # only then

        refuse_unreadable(conn_id)
        if conn_id != DEFAULT_SPARK_CONNECTION:
            raise AirflowFailException(
                f"Spark connection {conn_id!r} does not exist: create it, or leave out "
                f"spark_conn_id to use {DEFAULT_SPARK_CONNECTION}; if {DEFAULT_SPARK_CONNECTION} "
                f"does not exist, Spark runs on this machine ({_LOCAL_MASTER})"
            ) from None
        _log.warning(
            "connection %s does not exist: Spark runs on this machine with master %s; create the "
            "connection to use a cluster",
            conn_id,
            _LOCAL_MASTER,
        )
        return _on_this_machine(conn_id)
    except AirflowException as reason:
        raise ConnectionError(
            f"Spark connection {conn_id!r} could not be looked up ({type(reason).__name__}): check "
            "that Airflow's secrets backends answer, then retry"
        ) from reason
    if connection.conn_type not in _MASTER_TYPES:
        raise AirflowFailException(
            f"connection {conn_id!r} has type {connection.conn_type!r}: use a connection of type "
            "'spark'"
        )
    return connection


def is_on_this_machine(master: str) -> bool:
    """Return True for a local master, whose executors are threads of the driver."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def find_spark_submit() -> str:
    """Return the absolute path of ``spark-submit``: on the PATH, else in the installed pyspark.
    Raise ``AirflowFailException`` if neither has it.
    """
    on_path = shutil.which("spark-submit")
    if on_path:
        return str(Path(on_path).absolute())
    try:
        inside = Path(str(distribution("pyspark").locate_file("pyspark/bin/spark-submit")))
    except PackageNotFoundError:
        inside = None
    if inside is None or not os.access(inside, os.X_OK):
        raise AirflowFailException(
            "spark-submit is neither on the PATH nor in pyspark: run "
            "pip install 'airflow-provider-lake[spark]', or set spark_binary to its absolute path"
        )
    return str(inside)


def _on_this_machine(conn_id: str) -> Connection:
    from airflow.sdk import Connection

    return Connection(conn_id=conn_id, conn_type="spark", host=_LOCAL_MASTER)
