"""Takes a table back to an earlier state, as an Airflow task."""

from __future__ import annotations

from typing import Any

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.rollback import RollbackRequest
from spark_jobs.job_requests.values import Moment

__all__ = ["LakeRollbackOperator"]


class LakeRollbackOperator(LakeJobOperator):
    """Goes back to a snapshot: by number, by tag, or the last of a time or watermark.

    :param snapshot: the number of the snapshot
    :param tag: a tag of it
    :param as_of: the newest snapshot of that time
    :param watermark: the oldest snapshot that has reached it
    :param as_latest: publish the old rows as a new snapshot; ``false`` cuts newer snapshots
        off instead
    :param force: cut off snapshots although tags or branches began there
    :param dry_run: say what would be done, and change nothing
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
        **kwargs: Any,
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
