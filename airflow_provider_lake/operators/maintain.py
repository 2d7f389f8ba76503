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
    """Runs all maintenance that a table, or each table of the matching databases, needs, in the
    right order.

    In a Paimon table it expires partitions, compacts the buckets for which ``LakeHealthOperator``
    advises a compaction, expires snapshots beyond the table's retention, and deletes orphan files
    that last changed at least a day before the newest commit. In an Iceberg table it compacts
    delete files, data files and manifests, expires snapshots, and deletes orphan files older than
    three days. In a Mixed table it merges changes, expires snapshots, and deletes orphan files
    older than three days in both stores.

    If the task is killed, all tables remain intact, and a retry does the rest. The log has one
    sentence with the numbers, and a warning for each problem that remains.

    :param table: the table, ``database.table``; give ``table`` or ``database``
    :param database: a regular expression for the whole names of databases: all of their tables are
        maintained, one after the other
    :param including: with ``database``: maintain only tables whose whole name ``database.table``
        matches this regular expression
    :param excluding: with ``database``: do not maintain tables whose whole name ``database.table``
        matches this regular expression
    :param expire_consumers: delete consumers without progress since this time, or for this long,
        such as ``"2 d"``. In a Paimon table the option ``consumer.expiration-time`` also sets such
        a limit, even without this argument
    :param fail_when: ``degraded``: fail if the health verdict after the work is ``degraded`` or
        ``unhealthy``; ``unhealthy``: fail only if it is ``unhealthy``. Default: never fail because
        of the verdict
    :param dry_run: only report what each step would do. ``fail_when`` is then refused
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
        if self.table is not None:
            return {"table": self.table}
        return {} if self.database is None else {"database": self.database}
