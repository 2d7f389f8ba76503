# SPDX-License-Identifier: Apache-2.0
"""Expires the snapshots of a table as an Airflow task."""

from __future__ import annotations

from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.expire_snapshots import ExpireSnapshotsRequest
from spark_jobs.job_requests.values import PastTime

__all__ = ["LakeExpireSnapshotsOperator"]


class LakeExpireSnapshotsOperator(LakeJobOperator):
    """Deletes old snapshots and the files that only they need; the newest snapshot is always kept.

    All snapshots and files that a tag, a branch or a consumer needs are kept. If the task is
    killed, the next run finishes its work.

    :param retain_max: keep at most this many of the newest snapshots. If the table option
        ``snapshot.num-retained.min`` (10 by default) is larger, also give ``retain_min``. Default:
        the table option ``snapshot.num-retained.max``. Only for Paimon tables
    :param retain_min: keep at least this many of the newest snapshots, of any age. Default: the
        table option ``snapshot.num-retained.min``; of an Iceberg table
        ``history.expire.min-snapshots-to-keep``; of a Mixed table ``snapshot.keep.min-count``
    :param older_than: delete snapshots older than this, a time or an age such as ``"2 d"``, except
        the newest ``retain_min``. The age of a Paimon snapshot counts from the commit of the next
        snapshot, that of an Iceberg or Mixed snapshot from its own commit. Default: the table
        option ``snapshot.time-retained``; of an Iceberg table
        ``history.expire.max-snapshot-age-ms``; of a Mixed table ``snapshot.keep.duration``, and for
        its change store ``change.data.ttl.minutes``
    :param limit: delete at most this many snapshots. Default: the table option
        ``snapshot.expire.limit``. Only for Paimon tables
    :param dry_run: only list the snapshots and files that would be deleted
    """

    job = "expire_snapshots"
    request = ExpireSnapshotsRequest
    _never_missing = (*LakeJobOperator._never_missing, "retain_max", "retain_min", "limit")

    def __init__(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: PastTime | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.retain_max = retain_max
        self.retain_min = retain_min
        self.older_than = older_than
        self.limit = limit
        self.is_dry_run = dry_run
        self._check_arguments()
