"""Where Spark is: the connection that says so, and the program that submits to it."""

from __future__ import annotations

import logging
import os
import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from airflow_provider_lake.absent_connection import refuse_unreadable

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
    """The Spark connection; without the default one Spark runs on this machine.

    The stock hook takes any lookup that fails for ``yarn``, and says so in one line of its log.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        refuse_unreadable(conn_id)
        if conn_id != DEFAULT_SPARK_CONNECTION:
            raise AirflowFailException(
                f"there is no Spark connection {conn_id!r}: make it, or leave out spark_conn_id "
                f"to run Spark on this machine ({_LOCAL_MASTER})"
            ) from None
        _log.warning("no connection %s: Spark runs on this machine, as %s", conn_id, _LOCAL_MASTER)
        return _on_this_machine(conn_id)
    except AirflowException as reason:
        raise ConnectionError(f"Spark connection {conn_id!r} was not to be had") from reason
    if connection.conn_type not in _MASTER_TYPES:
        raise AirflowFailException(
            f"connection {conn_id!r} is of type {connection.conn_type!r}, not 'spark'"
        )
    return connection


def is_on_this_machine(master: str) -> bool:
    """Whether executors are threads of the driver, which is here."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def find_spark_submit() -> str:
    """The absolute path of ``spark-submit``: on the PATH, else inside the installed pyspark."""
    on_path = shutil.which("spark-submit")
    if on_path:
        return str(Path(on_path).absolute())
    try:
        inside = Path(str(distribution("pyspark").locate_file("pyspark/bin/spark-submit")))
    except PackageNotFoundError:
        inside = None
    if inside is None or not os.access(inside, os.X_OK):
        raise AirflowFailException(
            "there is no spark-submit on the PATH and none in pyspark: "
            "pip install 'airflow-provider-lake[spark]', or give spark_binary its absolute path"
        )
    return str(inside)


def _on_this_machine(conn_id: str) -> Connection:
    from airflow.sdk import Connection

    return Connection(conn_id=conn_id, conn_type="spark", host=_LOCAL_MASTER)
