# SPDX-License-Identifier: Apache-2.0
"""Restores an earlier state of a table, as an Airflow task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.rollback import RollbackRequest
from spark_jobs.job_requests.values import Moment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakeformat import CommitId

__all__ = ["LakeRollbackOperator"]


class LakeRollbackOperator(LakeJobOperator):
    """Restores an earlier snapshot of a Paimon or Iceberg table. Give one of the arguments
    ``snapshot``, ``tag``, ``as_of`` and ``watermark``.

    :param snapshot: the number of the snapshot; in an Iceberg table its id
    :param tag: the tag of the snapshot
    :param as_of: restore the snapshot that was the newest at this time
    :param watermark: restore the last snapshot whose watermark, in epoch milliseconds, is at most
        this value. Only for Paimon tables
    :param as_latest: True publishes the old rows of a Paimon table as a new snapshot; False deletes
        the newer snapshots instead. In an Iceberg table the branch moves back to the old snapshot,
        and False is refused
    :param force: with ``as_latest=False``: delete the newer snapshots even if tags or branches need
        them
    :param dry_run: only report what would be done
    """

    job = "rollback"
    request = RollbackRequest
    waits_for = ("watermark",)

    def __init__(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        watermark: int | None = None,
        as_latest: bool = True,
        force: bool = False,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.snapshot = snapshot
        self.tag = tag
        self.as_of = as_of
        self.watermark = watermark
        self.as_latest = as_latest
        self.force = force
        self.is_dry_run = dry_run
        self._check_arguments()

    def _commit_id(self, context: Context) -> CommitId:
        """Return the commit identity of this attempt.

        If the first attempt does not know ``first_try_head``, its identity has no
        ``first_try_millis``. With the start of the run as this time, a rollback of an Iceberg table
        by another task since the start would be taken for this one. An attempt that was resumed
        after a deferral has the identity of a retry, because its process may have done the work.
        """
        commit = super()._commit_id(context)
        is_first = context["ti"].try_number == 1 and self._kept is None
        if is_first and not self._is_resumed and commit.first_try_head is None:
            return replace(commit, first_try_millis=None)
        return commit
