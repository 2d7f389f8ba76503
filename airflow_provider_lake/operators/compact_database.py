# SPDX-License-Identifier: Apache-2.0
"""Compacts the tables of databases as an Airflow task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import WarehouseJobArguments
from airflow_provider_lake.jobs.identity import ONLY_COMMIT, find_first_try
from airflow_provider_lake.operators.job import LakeWarehouseJobOperator
from spark_jobs.job_requests.compact import CompactDatabaseRequest

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import CommitId
    from spark_jobs.job_requests.common import JobRequest
    from spark_jobs.runtime.job import JobResult

__all__ = ["LakeCompactDatabaseOperator"]


class LakeCompactDatabaseOperator(LakeWarehouseJobOperator):
    """Compacts the tables of databases in one task, one after the other; a failed table does not
    stop the next.

    If any table fails, the task fails and names each failed table; a retry compacts the
    failed tables. To give each table its own task, map ``LakeCompactOperator`` instead.

    :param database: a regular expression for the whole name of a database
    :param including: compact only tables whose whole name ``database.table`` matches this regular
        expression
    :param excluding: do not compact tables whose whole name ``database.table`` matches this regular
        expression
    :param strategy: ``full`` or ``minor``, as in ``LakeCompactOperator``
    :param where: a SQL condition on partition columns; for Iceberg tables, on any columns, as in
        ``LakeCompactOperator``. With this argument Mixed tables are skipped, and tables without
        these columns fail
    :param idle: only partitions whose newest file is older than this, such as ``"1 h"``; these are
        compacted as with the strategy ``full``. Iceberg tables fail with this argument, and Mixed
        tables are skipped
    :param bucket_executor: with engine ``python``: ``threads`` compacts several buckets or groups
        of files in parallel, ``serial`` one after the other. Default: ``threads``
    :param dry_run: only report what would be compacted
    """

    job = "compact_database"
    request = CompactDatabaseRequest
    moves_rows = True

    def __init__(
        self,
        *,
        database: str,
        including: str = ".*",
        excluding: str | None = None,
        strategy: Literal["full", "minor"] = "full",
        where: str | None = None,
        idle: str | None = None,
        bucket_executor: Literal["threads", "serial"] | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[WarehouseJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.database = database
        self.including = including
        self.excluding = excluding
        self.strategy: Literal["full", "minor"] = strategy
        self.where = where
        self.idle = idle
        self.bucket_executor: Literal["threads", "serial"] | None = bucket_executor
        self.is_dry_run = dry_run
        self._check_arguments()

    def _subject(self) -> dict[str, str]:
        return {"database": self.database}

    def _commit_id(self, context: Context) -> CommitId:
        """Return an identity that a clear changes, so that a cleared task compacts again."""
        from lakeformat import CommitId

        clears = f"{context['dag_run'].clear_number}.{context['ti'].max_tries}"
        first = find_first_try(
            context, f"{self.database}:{clears}", lambda: None, is_resumed=self._is_resumed
        )
        user = f"{self._commit_user(context)}.{clears}"
        return CommitId(user, ONLY_COMMIT, first_try_millis=first.millis)

    def _run(self, request: JobRequest, context: Context) -> JobResult:
        """Check the syntax of ``where`` before any table is compacted, then run the job."""
        from lakeformat.rows.conditions.filter import as_predicate

        if self.where is not None:
            as_predicate(self.where)
        return super()._run(request, context)
