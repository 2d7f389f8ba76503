# SPDX-License-Identifier: Apache-2.0
"""The base of job operators on one table: finds out if the task's commit is already published."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from airflow_provider_lake.jobs.cleared_tasks import LakeRepeatedMixin
from airflow_provider_lake.jobs.lineage import LakeLineageMixin
from spark_jobs.job_requests.common import CommitKeys, JobRequest, PartitionsRequest

if TYPE_CHECKING:
    from lakeformat import Table

__all__ = ["LakeTableJobMixin"]


class LakeTableJobMixin(LakeLineageMixin, LakeRepeatedMixin):
    """The part of a job operator that opens the table."""

    waits_for: ClassVar[tuple[str, ...]] = ()
    """Arguments that name objects, such as files, which may appear later: if one is given and its
    object is not found, the task is retried, and does not fail for good.
    """

    def _subject(self) -> dict[str, str]:
        return {"table": self.table}

    def _require_operation(self) -> None:
        """Raise ``UnsupportedError`` if the format of the table lacks the job's operation.

        Paimon tables have the operations of all jobs, so their catalog is not opened here.
        """
        from lakeformat import NotFoundError
        from spark_jobs.runtime.registry import find_job

        if self.lake_hook.catalog_options.get("format", "paimon") == "paimon":
            return
        with suppress(NotFoundError):  # the job names a missing table, or creates it
            self.lake_hook.table(self.table).require(find_job(self.job).operation)

    def _may_come(self) -> bool:
        from lakeformat import NotFoundError

        if all(getattr(self, name) is None for name in self.waits_for):
            return False
        try:
            self.lake_hook.table(self.table)
        except NotFoundError:
            return bool(getattr(self, "create", False))
        return True

    def _is_published(self, request: JobRequest) -> bool:
        """Return True if the one commit of this task is in the table. Return False for a task
        without such a commit, for example one that stages its rows.

        Raise ``NotFoundError`` for a missing table that the job does not create, and
        ``InvalidRequestError`` for partitions that the table cannot have, before anything is
        submitted.
        """
        from lakeformat import NotFoundError

        try:
            table = self.lake_hook.table(self.table)
        except NotFoundError:
            if getattr(request, "create", False):
                return False
            raise
        if isinstance(request, PartitionsRequest):
            _check_partitions(table, request)
        is_staged = getattr(request, "stage", False)
        if not self.publishes_once or is_staged or not isinstance(request, CommitKeys):
            return False
        identity = request.commit_id()
        return identity is not None and table.find_commit(identity) is not None


def _check_partitions(table: Table, request: PartitionsRequest) -> None:
    """Raise ``InvalidRequestError`` for an invalid SQL condition, or for columns or values that the
    table does not have.
    """
    if request.where is not None or request.partitions is not None:
        table.check_partition_choice(where=request.where, partitions=request.partitions)
