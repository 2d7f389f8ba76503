# SPDX-License-Identifier: Apache-2.0
"""Keys of the job ``commit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.job_requests.common import CommitRequest
from spark_jobs.job_requests.request import refusal

__all__ = ["StagedCommitRequest"]


@dataclass(frozen=True, kw_only=True)
class StagedCommitRequest(CommitRequest):
    """Publish staged results of a Paimon or Iceberg table in one snapshot. A retry does not publish
    them again.
    """

    staged: Sequence[str]
    """Addresses of staged results. The job ``ingest`` returns an address as ``staged`` in its
    result. Without a commit identity the addresses identify the commit: the same list is published
    once.
    """

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        if not self.staged:
            raise refusal("key 'staged' is empty: give the addresses that the job ingest returned")
        if twice := [each for each in self.staged if self.staged.count(each) > 1]:
            raise refusal(f"key 'staged' has {twice[0]!r} twice: give each address once")
