# SPDX-License-Identifier: Apache-2.0
"""Deletes unreferenced files, as an Airflow task."""

from __future__ import annotations

from typing import Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.remove_orphans import RemoveOrphansRequest
from spark_jobs.job_requests.values import Moment, PastTime

__all__ = ["LakeRemoveOrphansOperator"]


class LakeRemoveOrphansOperator(LakeJobOperator):
    """Deletes files of a table that no snapshot, tag, branch or changelog references.

    Dry run by default: lists what it would delete. Check the list, then set ``dry_run=False``.

    :param older_than: only delete files last changed before this: a time, or an age such as
        ``"2 d"``. Default: one day before the newest commit; if there is no commit, or
        ``running_since`` is given, one day ago. For Iceberg and Mixed tables the default is three
        days ago
    :param dry_run: only list the files that would be deleted
    :param running_since: start of the oldest running write: files changed since then are kept
    :param allow_younger: allow an ``older_than`` within the last day, or after ``running_since``.
        Stop all writers first
    :param max_share: a number above 0 and up to 1: refuse to delete more than 100 files if they are
        more than this share of the table's files or bytes. If the table has no snapshot, only 1
        permits a deletion
    :param external_paths: also delete orphans in the external paths of the table; no other table
        may use these paths. Only for Paimon tables
    :param staged_older_than: also delete unpublished staged results that are older than this time
        or age, such as ``"7 d"``, with their files. Default: all are kept. Not for Mixed tables
    """

    job = "remove_orphans"
    request = RemoveOrphansRequest
    _never_missing = (*LakeJobOperator._never_missing, "running_since")

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
        **kwargs: Unpack[TableJobArguments],
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
