# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``remove_orphans``."""

from __future__ import annotations

from dataclasses import dataclass

from spark_jobs.job_requests.common import TableRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import Moment, PastTime, Share, age_millis

__all__ = ["RemoveOrphansRequest"]

_DAY_MILLIS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class RemoveOrphansRequest(TableRequest):
    """Delete files that no snapshot, tag, branch or changelog references. Dry run by default."""

    older_than: PastTime | None = None
    """Only delete files last changed before this. Default: one day before the newest commit; if
    there is no commit, or ``running_since`` is given, one day ago. For Iceberg and Mixed tables the
    default is three days ago.
    """
    dry_run: bool = True
    """Only list the files that would be deleted."""
    running_since: Moment | None = None
    """Start of the oldest running write: files changed since then are kept."""
    allow_younger: bool = False
    """Allow an ``older_than`` within the last day, or after ``running_since``. Stop all writers
    first.
    """
    max_share: Share = 0.5
    """Refuse to delete more than 100 files if they are more than this share of the table's files or
    bytes. In a table without a snapshot, the job deletes files only if ``max_share`` is 1.
    """
    external_paths: bool = False
    """Also delete orphans in the external paths of the table; no other table may use these paths.
    Only for Paimon tables.
    """
    staged_older_than: PastTime | None = None
    """Also delete unpublished staged results that are older than this, with their files. Default:
    all are kept. Not for Mixed tables.
    """

    def __post_init__(self) -> None:
        TableRequest.__post_init__(self)
        age = None if self.older_than is None else age_millis(self.older_than)
        if age is not None and age < _DAY_MILLIS and not self.allow_younger:
            raise refusal(
                f"key 'older_than' is {self.older_than!r}, but files of the last day may belong to "
                "running writes: give at least one day; or stop every writer and set "
                "'allow_younger'"
            )
