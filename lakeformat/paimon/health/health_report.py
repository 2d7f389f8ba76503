# SPDX-License-Identifier: Apache-2.0
"""The report of ``table.health()``: numbers, a verdict, and reasons with advice."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.paimon.consumers import StalledConsumer
from lakeformat.tables.commit_observer import ObserverLag
from lakeformat.tables.health.health_summary import HealthSummary
from lakeformat.tables.health.numbers import HistoryNumbers, StorageNumbers
from lakeformat.tables.moment import moment_text

__all__ = [
    "BucketFacts",
    "DeleteFacts",
    "FileFacts",
    "HealthReport",
    "Holder",
    "SnapshotFacts",
    "StorageFacts",
    "UnknownFiles",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
    """The numbers of one bucket of one partition."""

    partition: str
    """The partition as ``dt=a/h=1``; empty without partition columns."""
    bucket: int
    files: int
    bytes: int
    rows: int
    small_files: int
    level_0_files: int | None
    """The number of files on level 0; None for an append table."""
    level_0_bytes: int | None
    sorted_runs: int | None
    """The number of files on level 0, plus one for each higher level with files.

    None for an append table.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The numbers of files and rows of the newest snapshot."""

    files: int = 0
    rows: int = 0
    """The number of rows in files, including delete rows, replaced rows and hidden rows."""
    buckets: int = 0
    """The number of buckets that have files, in all partitions."""
    partitions: int = 0
    target_file_size: int
    small_files: int = 0
    """The number of files smaller than ``compaction.small-file-ratio`` of the target size."""
    small_bytes: int = 0
    level_0_files: int | None = None
    """The number of files on level 0; None for an append table."""
    level_0_bytes: int | None = None
    level_0_rows: int | None = None
    most_sorted_runs: int | None = None
    buckets_due: int = 0
    """The number of buckets with too many sorted runs or, in append tables, with too many small
    files or deleted rows.
    """
    postponed_files: int = 0
    """The number of files in ``bucket-postpone``, whose rows have no bucket yet."""
    untold_files: int | None = None
    """The number of files whose rows no changelog contains yet.

    None if compactions of the table write no changelog.
    """
    untold_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFacts:
    """The numbers of stored rows that no reader returns: delete rows and hidden rows."""

    delete_rows: int = 0
    """The number of rows of the kinds DELETE and UPDATE_BEFORE, as manifest entries count them."""
    hidden_rows: int = 0
    """The number of rows that deletion vectors hide."""
    ratio: float = 0.0
    """The share, from 0 to 1, of delete rows and hidden rows in all rows of the files."""
    files_over_limit: int = 0
    """The number of files with a larger share of hidden rows than
    ``compaction.delete-ratio-threshold``.
    """
    uncounted_files: int = 0
    """The number of files whose writer did not count deletes; the other numbers lack these deletes.
    """


@dataclass(frozen=True, slots=True)
class Holder:
    """A consumer, tag or branch for which an old snapshot is kept."""

    what: str
    """Kind and name: ``consumer 'mirror'``, ``tag 'v1'`` or ``branch 'dev'``."""
    snapshot_id: int
    time_millis: int
    """The commit time of the snapshot in epoch milliseconds."""

    @property
    def moment(self) -> tuple[int, int]:
        """The key to sort by age: the commit time, then the id of the snapshot."""
        return (self.time_millis, self.snapshot_id)

    def __str__(self) -> str:
        return f"{self.what} with snapshot {self.snapshot_id} of {moment_text(self.time_millis)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts(HistoryNumbers):
    """The numbers of snapshots and changelogs of the branch, and what keeps old snapshots."""

    stalled_consumers: tuple[StalledConsumer, ...] = ()
    """Consumers that have made no progress for a long time, and for which overdue snapshots or
    changelogs are kept.
    """
    overdue: int = 0
    """The number of snapshots beyond the retention that the table options set."""
    expirable: int = 0
    """The number of overdue snapshots that an expiry would delete now; consumers keep the other
    ones.
    """
    changelogs: int = 0
    """The number of changelogs that outlived their snapshots."""
    overdue_changelogs: int = 0
    expirable_changelogs: int = 0
    holders: tuple[Holder, ...] = ()
    """At most ten consumers, tags and branches for which snapshots beyond the retention are kept.

    The oldest are first. Tags and branches are among them only with ``time_travel``.
    """
    publication: ObserverLag | None = None
    """The lag of the published Iceberg metadata behind the table; None for a table without it."""


@dataclass(frozen=True, slots=True)
class UnknownFiles:
    """The files in the table's directories to which no metadata of the table refers.

    Some may belong to running writes, which can still commit them.
    """

    files: int
    bytes: int
    old_files: int
    """The number of orphans: files that are old enough to delete, and whose names have a form that
    writers use.
    """
    old_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFacts(StorageNumbers):
    """The bytes of data, changelog and index files, by the reason to keep them."""

    overdue_bytes: int | None = None
    """The bytes that an expiry by the table options would free now; None without
    ``time_travel``.
    """
    branch_bytes: int | None = None
    """In the report of main, the bytes that only other branches need.

    None without ``time_travel``.
    """
    unknown: UnknownFiles | None = None
    """The files to which nothing refers; None without the argument ``unknown``."""
    lost_files: tuple[str, ...] | None = None
    """The addresses of missing or truncated files that the newest snapshot needs.

    None without ``unknown``, without a snapshot, or if the newest snapshot has data files in an
    external directory that the caller does not allow.
    """
    lost_changelog_files: tuple[str, ...] | None = None
    """The addresses of missing or truncated changelog files.

    None without ``unknown``, without a snapshot, or if the newest snapshot has data files in an
    external directory that the caller does not allow.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport(HealthSummary):
    """The health of a table at its newest snapshot."""

    files: FileFacts
    worst_buckets: tuple[BucketFacts, ...]
    """The ten most urgent buckets, or all buckets if there are fewer."""
    deletes: DeleteFacts
    snapshots: SnapshotFacts
    storage: StorageFacts
    notes: tuple[str, ...] = ()
    """Sentences about options, such as ignored ones; the verdict does not depend on them."""
