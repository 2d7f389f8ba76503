# SPDX-License-Identifier: Apache-2.0
"""The report of an expiry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lakeformat.paimon.consumers import StalledConsumer
from lakeformat.paimon.deletion import Deleted, Removal
from lakeformat.tables.expire_report import AnyExpireReport
from lakeformat.types.count_text import counted

__all__ = ["ExpireReport"]


@dataclass(frozen=True, slots=True)
class ExpireReport(AnyExpireReport):
    """The result of an expiry, or of its dry run."""

    table: str
    dry_run: bool
    snapshots: tuple[int, ...]
    """The ids of the expired snapshots."""
    changelogs: tuple[int, ...]
    """The ids of the expired changelogs, which had outlived their snapshots."""
    consumers: tuple[str, ...]
    """The ids of deleted consumers, which had made no progress for the given or configured time."""
    stale_consumers: tuple[str, ...]
    """The ids of consumers whose next snapshot had expired before; they keep no snapshots."""
    earliest_snapshot: int | None
    """The id of the oldest kept snapshot; None without snapshots."""
    reason: str
    """The reason why no more snapshots expired, for the log."""
    limited: bool
    """True if ``limit`` prevented further expiry: run the expiry again."""
    finished: int
    """The number of interrupted expiries that this run finished or, in a dry run, would finish."""
    deleted: Deleted
    directories: int
    """The number of removed empty directories."""
    spared: int
    """The number of data and changelog files that were kept because a tag, branch or later snapshot
    needs them.
    """
    notes: tuple[str, ...] = ()
    """Sentences about damaged metadata. The files that this metadata names were kept."""
    stalled_consumers: tuple[StalledConsumer, ...] = ()
    """Consumers that have made no progress for a long time, and so prevent further expiry."""
    removals: tuple[Removal, ...] = field(default=(), repr=False)
    """The files that a dry run would delete; empty for other runs and with ``on_progress``."""

    @property
    def has_work(self) -> bool:
        """True if the expiry removed something or, in a dry run, would remove something."""
        return bool(self.snapshots or self.changelogs or self.consumers or self.finished)

    @property
    def is_complete(self) -> bool:
        """True if every planned file was removed; otherwise the next run tries again."""
        return not self.deleted.failures

    @property
    def lines(self) -> tuple[str, ...]:
        """The report as lines of text: the changes that the expiry made or, in a dry run, would
        make, and what it kept.
        """
        return tuple(_lines(self))

    def advice(self, table: str) -> list[str]:
        """Return a sentence for each consumer that prevents further expiry, with the command to
        run.
        """
        return [f"{each.finding}: {each.advice(table)}" for each in self.stalled_consumers]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, without the list of files."""
        return {
            "table": self.table,
            "dry_run": self.dry_run,
            "snapshots": [*self.snapshots],
            "changelogs": [*self.changelogs],
            "consumers": [*self.consumers],
            "stale_consumers": [*self.stale_consumers],
            "stalled_consumers": [each.to_dict() for each in self.stalled_consumers],
            "earliest_snapshot": self.earliest_snapshot,
            "reason": self.reason,
            "limited": self.limited,
            "finished": self.finished,
            **self.deleted.to_dict(),
            "directories": self.directories,
            "spared": self.spared,
            "notes": [*self.notes],
        }


def _lines(report: ExpireReport) -> Iterator[str]:
    verb = "would expire" if report.dry_run else "expired"
    for noun, numbers in (("snapshot", report.snapshots), ("changelog", report.changelogs)):
        if numbers:
            yield f"{_numbers(noun, numbers)} {verb}"
    if not report.snapshots:
        yield f"no snapshot {verb}"
    if report.finished:
        finish = "would finish" if report.dry_run else "finished"
        yield f"{finish} {counted(report.finished, 'interrupted expiry', 'interrupted expiries')}"
    if report.deleted.total:
        yield report.deleted.line(dry_run=report.dry_run)
    if report.directories:
        yield f"deleted {counted(report.directories, 'empty directory', 'empty directories')}"
    if report.spared:
        yield f"kept {counted(report.spared, 'file')} for a tag, a branch or a later snapshot"
    if report.consumers:
        delete = "would delete" if report.dry_run else "deleted"
        yield f"{delete} consumers without progress: {', '.join(report.consumers)}"
    if report.stale_consumers:
        yield f"consumers whose next snapshot has expired: {', '.join(report.stale_consumers)}"
    yield from report.notes
    if report.earliest_snapshot is not None:
        yield f"oldest kept: snapshot {report.earliest_snapshot}: {report.reason}"


def _numbers(noun: str, numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    return f"{len(numbers)} {noun}s, {numbers[0]} to {numbers[-1]},"
