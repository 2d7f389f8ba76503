"""What the jobs ``compact``, ``compact_database`` and ``changelog`` are asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_jobs.job_requests.common import CommitKeys, CommitRequest, JobRequest, Partitions
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import BucketNumbers, ColumnNames, Duration, RegularExpression

__all__ = ["ChangelogRequest", "CompactDatabaseRequest", "CompactRequest"]

Executor = Literal["threads", "serial"]
OrderStrategy = Literal["order", "zorder", "hilbert"]


@dataclass(frozen=True, kw_only=True)
class CompactRequest(CommitRequest):
    """Merge the files of a table into fewer and larger ones; its rows stay as they are."""

    strategy: Literal["full", "minor"] = "full"
    """``full`` brings every bucket into its best shape, ``minor`` does what is due."""
    where: str | None = None
    """A SQL condition on partition columns."""
    partitions: Partitions | None = None
    """Some partitions by their values, ``{"dt": "2024-01-01"}`` or a list of such; an empty list
    is none of them, an empty object all."""
    idle: Duration | None = None
    """Only partitions nobody has written to for so long, as ``"1 h"``."""
    buckets: BucketNumbers | None = None
    """Only these buckets of each partition."""
    order_by: ColumnNames | None = None
    """Sort rows of a table without primary key by these columns."""
    order_strategy: OrderStrategy | None = None
    """How ``order_by`` sorts: column after column, or along a curve through all of them."""
    executor: Executor | None = None
    """Engine ``python``: a bucket per CPU at a time, which is the default, or one."""
    dry_run: bool = False
    """Say what would be done, and change nothing."""

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        _require_own_executor(self)
        if self.order_by is None and self.order_strategy is not None:
            raise refusal("key 'order_strategy' goes with 'order_by', which names the columns")
        if self.order_by is not None and (self.strategy != "full" or self.idle is not None):
            raise refusal(
                "key 'order_by' sorts all rows of the partitions chosen: it goes neither with "
                "strategy 'minor' nor with 'idle'"
            )


@dataclass(frozen=True, kw_only=True)
class CompactDatabaseRequest(JobRequest, CommitKeys):
    """Compact the tables of databases one after the other; one that fails stops no other."""

    database: RegularExpression
    """A regular expression of whole names of databases."""
    including: RegularExpression = ".*"
    """A regular expression of whole names ``database.table``: only these."""
    excluding: RegularExpression | None = None
    """The same: not these."""
    strategy: Literal["full", "minor"] = "full"
    """``full`` brings every bucket into its best shape, ``minor`` does what is due."""
    where: str | None = None
    """A SQL condition on partition columns."""
    idle: Duration | None = None
    """Only partitions nobody has written to for so long, as ``"1 h"``."""
    executor: Executor | None = None
    """Engine ``python``: a bucket per CPU at a time, which is the default, or one."""
    dry_run: bool = False
    """Say what would be done, and change nothing."""

    def __post_init__(self) -> None:
        CommitKeys.__post_init__(self)
        _require_own_executor(self)


@dataclass(frozen=True, kw_only=True)
class ChangelogRequest(CommitRequest):
    """Bring the changelog of a table up to date: compact what it does not tell of yet."""

    where: str | None = None
    """A SQL condition on partition columns."""
    partitions: Partitions | None = None
    """Some partitions by their values, ``{"dt": "2024-01-01"}`` or a list of such; an empty list
    is none of them, an empty object all."""
    idle: Duration | None = None
    """Only partitions nobody has written to for so long, as ``"1 h"``."""
    executor: Executor | None = None
    """Engine ``python``: a bucket per CPU at a time, which is the default, or one."""
    dry_run: bool = False
    """Say what would be done, and change nothing."""

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        _require_own_executor(self)


def _require_own_executor(
    wanted: CompactRequest | CompactDatabaseRequest | ChangelogRequest,
) -> None:
    if wanted.engine == "spark" and wanted.executor is not None and not wanted.dry_run:
        raise refusal("key 'executor' is for engine 'python': Spark has as many tasks as cores")
