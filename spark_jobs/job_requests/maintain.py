"""Keys of the job ``maintain``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import JobRequest
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import PastTime, RegularExpression

__all__ = ["MaintainRequest"]


@dataclass(frozen=True, kw_only=True)
class MaintainRequest(JobRequest):
    """Bring a table, or the tables of databases, into good health: expired partitions, compaction
    of what is due, expiry, dead files."""

    table: str | None = None
    """``database.table``, or a branch of it; give this or ``database``."""
    database: RegularExpression | None = None
    """A regular expression of whole names of databases: each of their tables, one after the other;
    one that fails stops no other."""
    including: RegularExpression = ".*"
    """With ``database``, a regular expression of whole names ``database.table``: only these."""
    excluding: RegularExpression | None = None
    """The same: not these."""
    expire_consumers: PastTime | None = None
    """Delete consumers that have not moved since then: a time, or an age such as ``"2 d"``. Without
    it only ``consumer.expiration-time`` deletes them."""
    fail_when: Literal["degraded", "unhealthy"] | None = None
    """Fail, with what stands in the way, where the verdict afterwards is this one or worse."""
    dry_run: bool = False
    """Report what each step would do, and change nothing."""

    def __post_init__(self) -> None:
        if (self.table is None) == (self.database is None):
            raise refusal(
                "give one of the keys 'table' and 'database': a table to maintain, or a regular "
                "expression of databases for each of their tables"
            )
        if self.table is not None and (self.excluding is not None or self.including != ".*"):
            raise refusal("keys 'including' and 'excluding' go with 'database': leave them out")
        if self.dry_run and self.fail_when is not None:
            raise refusal("key 'fail_when' judges the table afterwards: leave out 'dry_run'")
