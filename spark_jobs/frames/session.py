# SPDX-License-Identifier: Apache-2.0
"""Starts a Spark session, or registers the warehouse and the format ``lake`` in an existing one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.frames.parts import tasks_at_once
from spark_jobs.frames.tables import DEFAULT_WAREHOUSE, Warehouse, remember_place
from spark_jobs.runtime.spark_session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register", "session"]


def session(
    name: str = "lake",
    *,
    master: str = "local[*]",
    warehouse: str = DEFAULT_WAREHOUSE,
    catalog_options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark with ``master``, and ``register`` the warehouse; return the session.

    Under spark-submit ``master`` has no effect, because spark-submit has set it.
    """
    return register(start_session(name, master=master), warehouse, catalog_options)


def register(
    spark: SparkSession,
    warehouse: str = DEFAULT_WAREHOUSE,
    catalog_options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Register ``format("lake")`` and the warehouse in a classic or Spark Connect session; return
    the session.

    The options, some of which may be secrets, are sent to the tasks inside the registered class.
    They appear neither in Spark's configuration nor in a plan.
    """
    from spark_jobs.source.lake_source import source_in

    if ":/" not in warehouse:  # because tasks and planners work in other directories
        warehouse = os.path.abspath(os.path.expanduser(warehouse))
    place = Warehouse(warehouse, dict(catalog_options or {}))
    remember_place(spark, place)
    source = source_in(place, at_once=tasks_at_once(spark))
    spark.dataSource.register(source)
    return spark
