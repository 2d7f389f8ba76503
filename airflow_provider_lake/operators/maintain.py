# SPDX-License-Identifier: Apache-2.0
"""Maintains tables as an Airflow task."""

from __future__ import annotations

from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import WarehouseJobArguments
from airflow_provider_lake.jobs.lineage import LakeLineageMixin
from airflow_provider_lake.operators.job import LakeWarehouseJobOperator
from spark_jobs.job_requests.maintain import MaintainRequest
from spark_jobs.job_requests.values import PastTime

__all__ = ["LakeMaintainOperator"]


class LakeMaintainOperator(LakeWarehouseJobOperator, LakeLineageMixin):
    """Runs all maintenance that a table, or each table of a database, needs, in the right order.

    Expires partitions, compacts the buckets that are due, expires snapshots beyond the table's
    retention, and deletes orphan files older than a day. Of an Iceberg table it merges delete
    files, data files and manifests that are due, expires snapshots, and deletes orphan files older
    than three days. Tables remain intact if the task is killed; a retry does the rest. The log has
    one sentence with the numbers, and a warning for each obstacle that keeps a table from being
    healthy.

    :param table: ``database.table``; give this or ``database``
    :param database: a regular expression for the whole name of a database: maintains each of its
        tables
    :param including: with ``database``, a regular expression for the whole name ``database.table``:
        only tables that match
    :param excluding: with ``database``, a regular expression for the whole name ``database.table``:
        tables that match are left out
    :param expire_consumers: delete consumers without progress since this time, or for this long,
        such as ``"2 d"``
    :param fail_when: fail if the verdict afterwards is ``degraded`` or worse, or ``unhealthy``
    :param dry_run: only report what each step would do
    """

    job = "maintain"
    request = MaintainRequest
    moves_rows = True

    def __init__(
        self,
        *,
        table: str | None = None,
        database: str | None = None,
        including: str = ".*",
        excluding: str | None = None,
        expire_consumers: PastTime | None = None,
        fail_when: Literal["degraded", "unhealthy"] | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[WarehouseJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.database = database
        self.including = including
        self.excluding = excluding
        self.expire_consumers = expire_consumers
        self.fail_when = fail_when
        self.is_dry_run = dry_run
        self._check_arguments()

    def _subject(self) -> dict[str, str]:
        """Return the table or the database, depending on which is given."""
        if self.table is not None:
            return {"table": self.table}
        return {} if self.database is None else {"database": self.database}
