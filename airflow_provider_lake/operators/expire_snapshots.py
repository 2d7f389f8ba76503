"""Expires the snapshots of a table as an Airflow task."""

from __future__ import annotations

from typing import Any

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.expire_snapshots import ExpireSnapshotsRequest
from spark_jobs.job_requests.values import PastTime

__all__ = ["LakeExpireSnapshotsOperator"]


class LakeExpireSnapshotsOperator(LakeJobOperator):
    """Removes old snapshots with the files only they need; the newest always stays.

    What a tag, a branch or a consumer needs is kept. A killed try is finished by the next.

    :param retain_max: how many of the newest stay at most; by default as the table's options
        have it
    :param retain_min: how many of the newest stay whatever their age; by default as the
        options have it
    :param older_than: between those, what was replaced before then goes: a time, or an age
        such as ``"2 d"``
    :param limit: how many go at most
    :param dry_run: say what would go, and remove nothing
    """

    job = "expire_snapshots"
    request = ExpireSnapshotsRequest

    def __init__(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: PastTime | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.retain_max = retain_max
        self.retain_min = retain_min
        self.older_than = older_than
        self.limit = limit
        self.is_dry_run = dry_run
        self._check_arguments()
