# SPDX-License-Identifier: Apache-2.0
"""Keys of the jobs ``compact``, ``compact_database`` and ``changelog``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spark_jobs.job_requests.common import (
    CommitKeys,
    CommitRequest,
    JobRequest,
    Partitions,
    PartitionsRequest,
)
from spark_jobs.job_requests.request import refusal
from spark_jobs.job_requests.values import (
    BucketNumbers,
    ColumnNames,
    Duration,
    Numbered,
    RegularExpression,
)

__all__ = [
    "ChangelogRequest",
    "CompactDatabaseRequest",
    "CompactRequest",
    "CompactionRequest",
    "Strategy",
]

Executor = Literal["threads", "serial"]
Strategy = Literal["full", "minor", "sort", "zorder"]
OrderStrategy = Literal["order", "zorder", "hilbert"]


@dataclass(frozen=True, kw_only=True)
class CompactRequest(CommitRequest, PartitionsRequest):
    """Merge the files of a table into fewer and larger ones; its rows do not change. Iceberg tables
    refuse ``idle`` and ``buckets``; Mixed tables refuse these and ``where``, ``partitions``,
    ``order_by`` and ``max_commits``.
    """

    where: str | None = None
    """A SQL condition on partition columns. For an Iceberg table, the condition may use any
    columns. The job then skips files that cannot have matching rows. Each compacted file is
    rewritten with all its rows.
    """
    partitions: Partitions | None = None
    """Partitions by their values, ``{"dt": "2024-01-01"}``, or a list of such objects. An empty
    list selects no partition, an empty object every partition. For an Iceberg table, give only
    partition columns without a transform.
    """
    strategy: Strategy = "full"
    """In a Paimon table with a primary key, ``full`` compacts every bucket completely. Without a
    primary key, ``full`` merges small files, even if there are only a few, but may keep large
    files. ``minor`` compacts only the files that the options of the table select. In an Iceberg
    table, ``minor`` compacts the files that are [due](iceberg-compaction.md#files-that-are-due).
    ``full`` also compacts every file with deletes, and the small files of a partition if there are
    at least two. In a Mixed table, ``minor`` compacts the partitions that are
    [due](mixed-optimizing.md#when-an-optimizing-is-due), and ``full`` all partitions with changes,
    deletes or too many small files. Only for Iceberg tables: ``sort`` and ``zorder`` compact the
    same files as ``minor``, and sort the rows of the new files.
    """
    idle: Duration | None = None
    """Only partitions whose newest file is older than this; these are compacted as with the
    strategy ``full``. Only for Paimon tables.
    """
    buckets: BucketNumbers | None = None
    """Only these buckets of each partition. Only for Paimon tables."""
    order_by: ColumnNames | None = None
    """Columns by which to sort the rows. Strategy ``full`` sorts all rows of the chosen partitions;
    Paimon tables with a primary key refuse this key. Strategy ``sort`` sorts by these columns or,
    without this key, by the sort order of the table. Strategy ``zorder`` needs this key. Strategy
    ``minor`` does not sort, and refuses this key. In an Iceberg table an item may also be a term
    such as ``day(ts) desc nulls last``, but not for a Z-order.
    """
    order_strategy: OrderStrategy | None = None
    """The way to sort by the columns ``order_by`` with strategy ``full``. ``order`` sorts by the
    first column, then by the next; ``zorder`` and ``hilbert`` sort along a curve through all these
    columns. Iceberg tables do not have ``hilbert``. Default: ``order``.
    """
    max_commits: Numbered | None = None
    """For an Iceberg table: publish groups of files as they are done, in up to this many commits.
    After a conflict, each group of the failed commit is committed alone, so there can be more
    commits. A group that then has a conflict keeps its old files, and a retry compacts it. Default:
    all groups in one commit.
    """
    executor: Executor | None = None
    """With engine ``python``: ``threads`` compacts several buckets or groups of files in parallel,
    ``serial`` one after the other. Default: ``threads``.
    """
    dry_run: bool = False
    """Only report what would be compacted."""

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        _require_own_executor(self)
        if self.order_by is None and self.order_strategy is not None:
            raise refusal(
                "key 'order_strategy' needs key 'order_by', which names the columns: add it, or "
                "leave out 'order_strategy'"
            )
        if self.order_by is not None and (self.strategy == "minor" or self.idle is not None):
            other = "strategy 'minor'" if self.strategy == "minor" else "'idle'"
            raise refusal(
                f"key 'order_by' sorts all rows of the chosen partitions: leave out {other}, or "
                "'order_by'"
            )


@dataclass(frozen=True, kw_only=True)
class CompactDatabaseRequest(JobRequest, CommitKeys):
    """Compact the tables of databases, one after the other; a failed table does not stop the
    next.
    """

    database: RegularExpression
    """The databases whose whole name matches."""
    including: RegularExpression = ".*"
    """Compact only tables whose whole name ``database.table`` matches."""
    excluding: RegularExpression | None = None
    """Do not compact tables whose whole name ``database.table`` matches."""
    strategy: Literal["full", "minor"] = "full"
    """As in the job ``compact``."""
    where: str | None = None
    """A SQL condition, as in the job ``compact``: on partition columns or, for Iceberg tables, on
    any columns. A table without the columns of the condition fails. Mixed tables are skipped if
    this key is given.
    """
    idle: Duration | None = None
    """Only partitions whose newest file is older than this; these are compacted as with the
    strategy ``full``. Iceberg tables fail with this key, and Mixed tables are skipped.
    """
    executor: Executor | None = None
    """With engine ``python``: ``threads`` compacts several buckets or groups of files in parallel,
    ``serial`` one after the other. Default: ``threads``.
    """
    dry_run: bool = False
    """Only report what would be compacted."""

    def __post_init__(self) -> None:
        JobRequest.__post_init__(self)
        CommitKeys.__post_init__(self)
        _require_own_executor(self)


@dataclass(frozen=True, kw_only=True)
class ChangelogRequest(CommitRequest, PartitionsRequest):
    """Compact a Paimon table so that its changelog gets the missing changes. The table option
    ``changelog-producer`` must be ``lookup`` or ``full-compaction``. With ``lookup`` the job
    compacts with the strategy ``minor``. With ``full-compaction`` it completely compacts every
    bucket that has new rows.
    """

    idle: Duration | None = None
    """Only partitions whose newest file is older than this; these are compacted completely."""
    executor: Executor | None = None
    """With engine ``python``: ``threads`` compacts several buckets in parallel, ``serial`` one
    after the other. Default: ``threads``.
    """
    dry_run: bool = False
    """Only report what would be done."""

    def __post_init__(self) -> None:
        CommitRequest.__post_init__(self)
        _require_own_executor(self)


CompactionRequest: TypeAlias = CompactRequest | CompactDatabaseRequest | ChangelogRequest
"""The requests of all jobs that compact."""


def _require_own_executor(wanted: CompactionRequest) -> None:
    if wanted.engine == "spark" and wanted.executor is not None and not wanted.dry_run:
        raise refusal(
            "key 'executor' needs engine 'python': leave out 'executor' with engine 'spark'"
        )
