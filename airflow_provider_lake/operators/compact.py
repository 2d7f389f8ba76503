# SPDX-License-Identifier: Apache-2.0
"""Compacts a table as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from airflow_provider_lake.arguments.task_arguments import TableJobArguments
from airflow_provider_lake.operators.job import LakeJobOperator
from spark_jobs.job_requests.common import Partitions
from spark_jobs.job_requests.compact import CompactRequest, Strategy

__all__ = ["LakeCompactOperator"]


class LakeCompactOperator(LakeJobOperator):
    """Rewrites a table into fewer and larger files; its rows do not change.

    Buckets are committed in groups: after a kill, committed buckets are kept and a retry compacts
    the rest. Writers can run at the same time. Two compactions of the same buckets conflict, so
    give all compactions of a table one pool with one slot. An Iceberg table has no buckets: by
    default all new files are published in one commit, and ``idle`` and ``buckets`` are refused. A
    Mixed table also publishes all merged rows in one commit, and refuses ``idle``, ``buckets``,
    ``where``, ``partitions``, ``order_by`` and ``max_commits``.

    :param strategy: in a Paimon table with a primary key ``full`` compacts every bucket completely;
        in one without a key it merges even a few small files, but may keep large files. ``minor``
        compacts only the files that the table options select. In an Iceberg table ``minor`` takes
        the files that are due by the rules of Java's ``rewrite_data_files``. ``full`` takes these,
        all data files with deletes, and the small files of each partition that has at least two of
        them. In a Mixed table ``minor`` takes the partitions that are due by the table properties,
        ``full`` those with changes, deletes or too many small files. Only for Iceberg tables:
        ``sort`` and ``zorder`` compact the same files as ``minor``, and sort the rows of the new
        files
    :param where: a SQL condition on partition columns. For an Iceberg table, the condition may use
        any columns, and selects the files in which a row may meet it. Each of these files is
        compacted as a whole
    :param partitions: partitions by their values, ``{"dt": "2024-01-01"}``, or a list of such
        dicts. An empty list selects no partition, an empty dict every partition. For an Iceberg
        table, give only partition columns without a transform
    :param idle: only partitions whose newest file is older than this, such as ``"1 h"``; these are
        compacted as with the strategy ``full``. Only for Paimon tables
    :param buckets: only these buckets of each partition. Only for Paimon tables
    :param order_by: columns by which to sort the rows. Strategy ``full`` sorts all rows of the
        chosen partitions; a Paimon table must have no primary key. Strategy ``sort`` sorts by these
        columns, by default by the sort order of the table. Strategy ``zorder`` needs columns here.
        Strategy ``minor`` refuses ``order_by``. In an Iceberg table an item may also be a term such
        as ``day(ts) desc nulls last``, but not for a Z-order
    :param order_strategy: the way to sort by the columns ``order_by`` with strategy ``full``.
        ``order`` sorts by the first column, then by the next; ``zorder`` and ``hilbert`` sort along
        a curve through all these columns. Iceberg tables do not have ``hilbert``. Default:
        ``order``
    :param max_commits: for an Iceberg table: publish groups of files as they are done, in up to
        this many commits. A commit with a conflict is split into one commit for each of its groups,
        so there can be more than ``max_commits``. A group whose own commit conflicts keeps its old
        files, and a retry compacts it. Default: all groups in one commit
    :param bucket_executor: with engine ``python``: ``threads`` compacts several buckets or groups
        of files in parallel, ``serial`` one after the other. Default: ``threads``
    :param dry_run: only report what would be compacted
    """

    job = "compact"
    request = CompactRequest
    moves_rows = True

    def __init__(
        self,
        *,
        strategy: Strategy = "full",
        where: str | None = None,
        partitions: Partitions | None = None,
        idle: str | None = None,
        buckets: Sequence[int] | None = None,
        order_by: Sequence[str] | None = None,
        order_strategy: Literal["order", "zorder", "hilbert"] | None = None,
        max_commits: int | None = None,
        bucket_executor: Literal["threads", "serial"] | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[TableJobArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.strategy: Strategy = strategy
        self.where = where
        self.partitions = partitions
        self.idle = idle
        self.buckets = buckets
        self.order_by = order_by
        self.order_strategy: Literal["order", "zorder", "hilbert"] | None = order_strategy
        self.max_commits = max_commits
        self.bucket_executor: Literal["threads", "serial"] | None = bucket_executor
        self.is_dry_run = dry_run
        self._check_arguments()
