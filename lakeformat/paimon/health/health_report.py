"""What ``table.health()`` answers: facts, a verdict, and reasons that say what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from lakeformat.paimon.consumers import StalledConsumer
from lakeformat.paimon.health.score import Score
from lakeformat.paimon.read.time_travel import moment_text
from lakeformat.tables.report import Report

__all__ = [
    "BucketFacts",
    "DeleteFacts",
    "FileFacts",
    "HealthReport",
    "Holder",
    "Reason",
    "SnapshotFacts",
    "StorageFacts",
    "UnknownFiles",
    "Verdict",
]


_GOOD_SCORE = 50


class Verdict(StrEnum):
    """One word for the whole table."""

    EMPTY = "empty"
    """Nobody has committed to it."""
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """It works and costs more than it should."""
    UNHEALTHY = "unhealthy"
    """Reads or writes suffer."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a table is not healthy, and what to do about it."""

    finding: str
    advice: str
    is_severe: bool = False

    def __str__(self) -> str:
        return f"{self.finding}: {self.advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
    """One bucket of one partition."""

    partition: str
    """``dt=a/h=1``; empty without partition columns."""
    bucket: int
    files: int
    bytes: int
    rows: int
    small_files: int
    level_0_files: int | None
    """Of an append table None, as it has no levels."""
    level_0_bytes: int | None
    sorted_runs: int | None
    """Each file of level 0, and each higher level that has files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The files of the newest snapshot."""

    files: int = 0
    rows: int = 0
    """Rows in files: those that delete others, are hidden or replaced are counted too."""
    buckets: int = 0
    """Buckets that have files, of all partitions."""
    partitions: int = 0
    target_file_size: int
    small_files: int = 0
    """Smaller than ``compaction.small-file-ratio`` of the target size."""
    small_bytes: int = 0
    level_0_files: int | None = None
    """None for an append table, which has no levels."""
    level_0_bytes: int | None = None
    level_0_rows: int | None = None
    most_sorted_runs: int | None = None
    buckets_due: int = 0
    """Buckets that a compaction without further options would pick."""
    postponed_files: int = 0
    """Files of rows that wait for a bucket."""
    untold_files: int | None = None
    """Files whose rows the changelog does not tell of yet; None where no compaction makes one."""
    untold_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFacts:
    """Rows that are in files and do not count."""

    delete_rows: int = 0
    """Rows that take another one back, as files say it."""
    hidden_rows: int = 0
    """Rows that deletion vectors hide."""
    ratio: float = 0.0
    """Both, as a part of all rows in files."""
    files_over_limit: int = 0
    """Files with a larger part hidden than ``compaction.delete-ratio-threshold``."""
    uncounted_files: int = 0
    """Files whose writer did not count; what is above does not know them."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A consumer, tag or branch that keeps a state of the table from expiring."""

    what: str
    """``consumer 'mirror'``, ``tag 'v1'`` or ``branch 'dev'``."""
    snapshot_id: int
    time_millis: int
    """The time of that snapshot's commit."""

    @property
    def moment(self) -> tuple[int, int]:
        """For an order: of two commits of one millisecond the later has the higher number."""
        return (self.time_millis, self.snapshot_id)

    def __str__(self) -> str:
        return f"{self.what} with snapshot {self.snapshot_id} of {moment_text(self.time_millis)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """The snapshots of the branch that have not expired."""

    count: int = 0
    oldest: int | None = None
    newest: int | None = None
    oldest_age_seconds: float | None = None
    newest_age_seconds: float | None = None
    tags: int = 0
    branches: int = 0
    stalled_consumers: tuple[StalledConsumer, ...] = ()
    """Consumers that keep what would expire otherwise, and have not moved for long."""
    overdue: int = 0
    """Snapshots beyond the retention of the table's options."""
    expirable: int = 0
    """Of those, the ones an expiry would remove now; consumers keep the others."""
    changelogs: int = 0
    """Changelogs that have outlived their snapshots."""
    overdue_changelogs: int = 0
    expirable_changelogs: int = 0
    holders: tuple[Holder, ...] = ()
    """Consumers, tags and branches that keep a state beyond the retention, the oldest first and
    not more than ten; tags and branches only with ``time_travel``."""


@dataclass(frozen=True, slots=True)
class UnknownFiles:
    """Files in the table's directories that no snapshot, tag or branch leads to.

    Writes under way have some of them, which they may still commit.
    """

    files: int
    bytes: int
    old_files: int
    """Dead: old enough for the removal of orphans, and named as writers name files."""
    old_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFacts:
    """Bytes by what they are there for; of data, changelog and index files."""

    live_bytes: int = 0
    """Read by the newest snapshot."""
    time_travel_files: int | None = None
    time_travel_bytes: int | None = None
    """Only for older snapshots, changelogs, tags and branches; None if not asked for."""
    overdue_bytes: int | None = None
    """Of those, what an expiry by the table's own options would free."""
    branch_bytes: int | None = None
    """Of those, what only other branches need."""
    unknown: UnknownFiles | None = None
    """None if nobody asked; metadata files are counted here too."""
    lost_files: tuple[str, ...] | None = None
    """Addresses of files the newest snapshot needs, gone or cut short; None if nobody asked."""
    lost_changelog_files: tuple[str, ...] | None = None
    """The same of files that readers of changes need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport(Report):
    """How a table fares at its newest snapshot."""

    table: str
    location: str
    snapshot_id: int | None
    verdict: Verdict
    reasons: tuple[Reason, ...]
    """Severe ones first; none if the table is healthy."""
    score: int
    """From 0 to 100."""
    score_parts: Score
    score_notes: tuple[str, ...]
    """Which parts of the score say nothing about this kind of table."""
    files: FileFacts
    worst_buckets: tuple[BucketFacts, ...]
    """Not all of them: those with most to do."""
    deletes: DeleteFacts
    snapshots: SnapshotFacts
    storage: StorageFacts
    notes: tuple[str, ...] = ()
    """Options of other engines that are ignored or refuse an operation; no part of the verdict."""

    @property
    def why_they_differ(self) -> str | None:
        """Said to who meets a good score beside a verdict that is not; None otherwise."""
        if not self.reasons or self.score < _GOOD_SCORE:
            return None
        return (
            "the verdict follows from the reasons; the score says how much a compaction or an "
            "expiry would mend, weighed by bytes, and is high while the files are small in sum"
        )

    @property
    def first_step(self) -> str | None:
        """The command to run first: that of the first reason; None where no reason has one."""
        return next((each.advice for each in self.reasons if each.advice.startswith("lake ")), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        more = {"verdict": str(self.verdict), "why_they_differ": self.why_they_differ}
        return {**asdict(self), **more}
