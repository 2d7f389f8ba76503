# SPDX-License-Identifier: Apache-2.0
"""The report of ``table.health()``: facts, a verdict, and reasons with advice."""

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
    """The number of files on level 0; None for an append table, which has no levels."""
    level_0_bytes: int | None
    sorted_runs: int | None
    """Number of files of level 0 plus number of higher levels that have files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The numbers of files and rows of the newest snapshot."""

    files: int = 0
    rows: int = 0
    """The number of rows in files, including deletes and hidden or replaced rows."""
    buckets: int = 0
    """The number of buckets that have files, in all partitions."""
    partitions: int = 0
    target_file_size: int
    small_files: int = 0
    """The number of files smaller than ``compaction.small-file-ratio`` of the target size."""
    small_bytes: int = 0
    level_0_files: int | None = None
    """The number of files on level 0; None for an append table, which has no levels."""
    level_0_bytes: int | None = None
    level_0_rows: int | None = None
    most_sorted_runs: int | None = None
    buckets_due: int = 0
    """The number of buckets that a compaction without further options would pick."""
    postponed_files: int = 0
    """The number of files with postponed rows, which have no bucket yet."""
    untold_files: int | None = None
    """The number of files whose rows are not in the changelog yet; None if compactions
    write none.
    """
    untold_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFacts:
    """The numbers of rows that files contain but readers never return."""

    delete_rows: int = 0
    """The number of delete rows, as counted in the metadata of files."""
    hidden_rows: int = 0
    """The number of rows that deletion vectors hide."""
    ratio: float = 0.0
    """The share of delete rows and hidden rows in all rows of the files."""
    files_over_limit: int = 0
    """The number of files with a larger hidden share than ``compaction.delete-ratio-threshold``."""
    uncounted_files: int = 0
    """The number of files whose writer did not count deletes; the numbers above exclude them."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A consumer, tag or branch that keeps a state of the table from expiring."""

    what: str
    """The name: ``consumer 'mirror'``, ``tag 'v1'`` or ``branch 'dev'``."""
    snapshot_id: int
    time_millis: int
    """The time when its snapshot was committed."""

    @property
    def moment(self) -> tuple[int, int]:
        """The sort key: the time, then the number of the snapshot."""
        return (self.time_millis, self.snapshot_id)

    def __str__(self) -> str:
        return f"{self.what} with snapshot {self.snapshot_id} of {moment_text(self.time_millis)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts(HistoryNumbers):
    """The numbers of snapshots and changelogs of the branch, and what keeps old ones."""

    stalled_consumers: tuple[StalledConsumer, ...] = ()
    """Consumers that keep overdue snapshots and have not moved for long."""
    overdue: int = 0
    """The number of snapshots beyond the retention of the table's options."""
    expirable: int = 0
    """The number of overdue snapshots that an expiry would delete now; consumers keep the rest."""
    changelogs: int = 0
    """The number of changelogs whose snapshots have expired."""
    overdue_changelogs: int = 0
    expirable_changelogs: int = 0
    holders: tuple[Holder, ...] = ()
    """Consumers, tags and branches that keep a state beyond the retention, the oldest first and
    not more than ten; tags and branches only with ``time_travel``."""
    publication: ObserverLag | None = None
    """The distance between the published Iceberg metadata and the table; None if the table is not
    published."""


@dataclass(frozen=True, slots=True)
class UnknownFiles:
    """Files in the table's directories to which no snapshot, tag or branch refers.

    Some belong to running writes, which may still commit them.
    """

    files: int
    bytes: int
    old_files: int
    """The number of orphans: files old enough to delete, with a name that only writers give."""
    old_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFacts(StorageNumbers):
    """The bytes of data, changelog and index files, by the reason to keep them."""

    overdue_bytes: int | None = None
    """The bytes that an expiry by the table's own options would free; None without
    ``time_travel``.
    """
    branch_bytes: int | None = None
    """The bytes that only other branches need; None without ``time_travel``."""
    unknown: UnknownFiles | None = None
    """Data, index and metadata files to which nothing refers; None without ``unknown``."""
    lost_files: tuple[str, ...] | None = None
    """Missing or truncated files that the newest snapshot needs; None without ``unknown``."""
    lost_changelog_files: tuple[str, ...] | None = None
    """Missing or truncated changelog files; None without ``unknown``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport(HealthSummary):
    """The health of a table at its newest snapshot."""

    files: FileFacts
    worst_buckets: tuple[BucketFacts, ...]
    """The most urgent buckets; further buckets are left out."""
    deletes: DeleteFacts
    snapshots: SnapshotFacts
    storage: StorageFacts
    notes: tuple[str, ...] = ()
    """Options that are ignored or that forbid an operation; they do not change the verdict."""
