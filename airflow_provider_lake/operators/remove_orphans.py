"""Removes files nothing leads to, as an Airflow task."""

from __future__ import annotations

from typing import Any

from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.remove_orphans import RemoveOrphansRequest
from spark_jobs.job_requests.values import Moment, PastTime

__all__ = ["LakeRemoveOrphansOperator"]


class LakeRemoveOrphansOperator(LakeJobOperator):
    """Removes files of a table that no snapshot, tag, branch or changelog leads to.

    As it comes it removes nothing and says what would go: give ``dry_run=False`` once that was
    looked at.

    :param older_than: only files last changed before then: a time, or an age such as ``"2
        d"``. By default a day before now or the newest commit, whichever is older
    :param dry_run: say what would go, and remove nothing
    :param running_since: when the oldest write under way began: younger files stay
    :param allow_younger: nobody writes: files of the last day may go
    :param max_share: more than this part of the table's files or bytes is refused
    :param external_paths: look outside of the table too, where no other table may keep files
    :param staged_older_than: give up staged results nobody has published since then, with
        their files: a time, or an age such as ``"7 d"``. Else they all stay
    """

    job = "remove_orphans"
    request = RemoveOrphansRequest

    def __init__(
        self,
        *,
        older_than: PastTime | None = None,
        dry_run: bool = True,
        running_since: Moment | None = None,
        allow_younger: bool = False,
        max_share: float = 0.5,
        external_paths: bool = False,
        staged_older_than: PastTime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.older_than = older_than
        self.is_dry_run = dry_run
        self.running_since = running_since
        self.allow_younger = allow_younger
        self.max_share = max_share
        self.external_paths = external_paths
        self.staged_older_than = staged_older_than
        self._check_arguments()
