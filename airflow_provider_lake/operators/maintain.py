"""Brings tables into good health as an Airflow task."""

from __future__ import annotations

from typing import Any, Literal

from airflow_provider_lake.lineage import LakeLineageMixin
from airflow_provider_lake.operators.job import LakeWarehouseJobOperator
from spark_jobs.job_requests.maintain import MaintainRequest
from spark_jobs.job_requests.values import PastTime

__all__ = ["LakeMaintainOperator"]


class LakeMaintainOperator(LakeWarehouseJobOperator, LakeLineageMixin):
    """Does all that a table, or each table of a database, needs, in the right order.

    Expired partitions, compaction of the buckets that are due, expiry beyond the table's
    retention, dead files older than a day. A killed try leaves sound tables; a retry does what is
    still due. The log has one sentence with the numbers, and a warning for each thing that stands
    in the way of a healthy table.

    :param table: ``database.table``; give this or ``database``
    :param database: a regular expression of whole names of databases: each of their tables
    :param including: with ``database``, a regular expression of whole names ``database.table``:
        only these
    :param excluding: the same: not these
    :param expire_consumers: delete consumers that have not moved since then: a time, or an age
        such as ``"2 d"``
    :param fail_when: fail where the verdict afterwards is ``degraded`` or worse, or ``unhealthy``
    :param dry_run: report what each step would do, and change nothing
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
        **kwargs: Any,
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
        """The table or the database, whichever is given."""
        if self.table is not None:
            return {"table": self.table}
        return {} if self.database is None else {"database": self.database}
