# SPDX-License-Identifier: Apache-2.0
"""Links of a task in the web interface, built from its XComs, its ids and the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs
from airflow.providers.common.compat.sdk import XCom
from airflow.sdk import BaseOperatorLink

from airflow_provider_lake.compat import conf

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import TaskInstanceKey
    from airflow.sdk import BaseOperator

__all__ = ["SPARK_KEY", "TABLE_KEY", "LakeSnapshotLink", "LakeSparkLink"]

TABLE_KEY = "lake_table"
"""The key of the XCom with the table and the connection of a task, pushed before its work
starts.
"""
SPARK_KEY = "lake_spark"
"""The key of the XCom with the Spark application of a task, pushed as soon as the driver has its
id.
"""


@attrs.define()
class LakeSnapshotLink(BaseOperatorLink):
    """Links to the snapshots of a task: in a table browser, else in the task's tab *Lake
    snapshots*.

    ``[lake] snapshot_url`` is the address of the browser, with ``{database}``, ``{table}`` and
    ``{snapshot_id}`` as placeholders.
    """

    name = "Lake snapshot"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address in the table browser. Without a browser, or for a task on a database,
        return the address of the task's tab.
        """
        pattern = conf.get("lake", "snapshot_url", fallback="")
        about = _xcom_of(ti_key, TABLE_KEY) if pattern else {}
        if "table" not in about:
            return _tab_of(ti_key)
        database, _, table = str(about["table"]).rpartition(".")
        snapshot_id = _xcom_of(ti_key, "return_value").get("snapshot_id")
        members = {
            "database": database,
            "table": table,
            "snapshot_id": "" if snapshot_id is None else snapshot_id,
        }
        quoted = {name: quote(str(each), "") for name, each in members.items()}
        return str(pattern.format(**quoted))


@attrs.define()
class LakeSparkLink(BaseOperatorLink):
    """Links to the Spark application of a task: in the history server, else to the web page of its
    driver.

    ``[lake] spark_history_url`` is the address of the history server. The web page of a driver
    exists only while the driver runs.
    """

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address; empty if the task has started no Spark application, or if neither
        page is known.
        """
        if not getattr(operator, "is_on_spark", True):
            return ""  # reading an XCom that was never pushed logs an error
        about = _xcom_of(ti_key, SPARK_KEY)
        history = conf.get("lake", "spark_history_url", fallback="")
        if history and about.get("application_id"):
            return f"{history.rstrip('/')}/history/{quote(str(about['application_id']), '')}/jobs/"
        return str(about.get("ui") or "")


def _xcom_of(ti_key: TaskInstanceKey, key: str) -> Mapping[str, Any]:
    value = XCom.get_value(ti_key=ti_key, key=key)
    return value if isinstance(value, Mapping) else {}


def _tab_of(ti_key: TaskInstanceKey) -> str:
    """Return the address of the task's tab *Lake snapshots*."""
    from airflow_provider_lake.page import TASK_PAGE  # parsing a DAG does not need it

    base = (conf.get("api", "base_url", fallback="") or "").rstrip("/")
    mapped = "" if ti_key.map_index in (None, -1) else f"/mapped/{ti_key.map_index}"
    names = [quote(name, "") for name in (ti_key.dag_id, ti_key.run_id, ti_key.task_id)]
    return f"{base}/dags/{names[0]}/runs/{names[1]}/tasks/{names[2]}{mapped}/plugin/{TASK_PAGE}"
