# SPDX-License-Identifier: Apache-2.0
"""Restores an earlier state of a table, as an Airflow task."""

from __future__ import annotations

from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.rollback import RollbackRequest
from spark_jobs.job_requests.values import Moment

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
