# SPDX-License-Identifier: Apache-2.0
"""The report of a compaction of an Iceberg table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.iceberg.compact.plan import CompactPlan, CompactUnit
from lakeformat.iceberg.compact.run import RewrittenUnit
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.tables.compact_summary import CompactSummary
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["CompactReport", "GroupOutcome", "GroupOutcomes", "Times", "compact_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """The result of one group of files, and the reason for this result."""

    partition: str
    outcome: str
    """``compacted``, ``not chosen``, ``dropped`` after a conflict, or ``already published`` by
    another process with the same ``commit``."""
    reason: str
    rows_in: int = 0
    """The number of rows in the old files, including deleted rows."""
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    files_in: int = 0
    files_out: int = 0
    millis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport(CompactSummary):
    """The report of one compaction.

    Its numbers of rows, bytes and files are sums of the compacted groups.
    """

    delete_files_removed: int = 0
    """The number of removed delete files, which applied to no data file any more."""
    unfinished: str | None = None
    """Only with partial progress: the reason why some groups kept their old files; else None."""
    rounds: int = 0
    """The number of plans: more than 1 only after conflicts. 0 if an earlier attempt had published
    the result.
    """
    plan_millis: int = 0
    run_millis: int = 0
    """The sum of the times of the compacted groups, even if several ran at the same time."""
    commit_millis: int = 0
    millis: int = 0
    """The time of the whole compaction."""
    groups: tuple[GroupOutcome, ...] = ()
    reason: str
    """The outcome in one sentence, for the log."""

    @property
    def sentence(self) -> str:
        """The outcome with its numbers, in one sentence."""
        return self.reason


@dataclass(slots=True)
class Times:
    """The times of a compaction in milliseconds; ``rounds`` is the number of plans."""

    rounds: int = 0
    plan_millis: int = 0
    commit_millis: int = 0
    millis: int = 0


@dataclass(frozen=True, slots=True)
class GroupOutcomes:
    """The groups of the last plan, by their result."""

    plan: CompactPlan
    done: Sequence[RewrittenUnit] = ()
    dropped: Sequence[tuple[RewrittenUnit, str]] = ()
    repeated: Sequence[RewrittenUnit] = ()
    """Groups that another process with the same ``commit`` published in the snapshot
    ``completed``."""
    completed: Snapshot | None = None

    @property
    def left(self) -> int:
        """The number of chosen groups that kept their old files."""
        return len(self.plan.units) - len(self.done) - len(self.repeated)

    @property
    def unfinished(self) -> str | None:
        """The reason why some chosen groups kept their old files; None if no chosen group did."""
        if not self.left:
            return None
        why = (
            "other commits changed these meanwhile"
            if self.left == len(self.dropped)
            else "the compaction ended before all new files were published"
        )
        return (
            f"{self.left} of {counted(len(self.plan.units), 'group')} kept the old files, because "
            f"{why}: run the compaction again"
        )

    @property
    def already(self) -> str | None:
        """A text for the report: the number of groups that another process published, and the
        snapshot that has them.

        None if ``completed`` is None: then no other process published a group.
        """
        if self.completed is None:
            return None
        groups, snapshot = counted(len(self.repeated), "group"), self.completed.snapshot_id
        return f"{groups} already published as snapshot {snapshot}"


def compact_report(
    table: str,
    strategy: str,
    snapshots: Sequence[Snapshot],
    earlier: Sequence[int],
    groups: GroupOutcomes,
    times: Times,
) -> CompactReport:
    """Return the report of a compaction.

    ``snapshots`` are the snapshots that this compaction published. ``earlier`` has the ids of the
    snapshots with which earlier attempts published a part of the work.
    """
    done = [_compacted(each) for each in groups.done]

    def total(name: str) -> int:
        return sum(getattr(each, name) for each in done)

    ids = tuple(each.snapshot_id for each in snapshots)
    files_in, files_out = total("files_in"), total("files_out")
    reason = None if groups.left else "no action needed: no group of files is due"
    if ids:
        names = ", ".join(map(str, ids))
        reason = (
            f"{counted(files_in, 'file')} of {size(total('bytes_in'))} became "
            f"{counted(files_out, 'file')} of {size(total('bytes_out'))}, published as "
            f"{'snapshot' if len(ids) == 1 else 'snapshots'} {names}"
        )
    completed = () if groups.completed is None else (groups.completed.snapshot_id,)
    return CompactReport(
        table=table,
        strategy=strategy,
        snapshot_ids=ids,
        earlier_snapshot_ids=(*earlier, *completed),
        rows_in=total("rows_in"),
        rows_out=total("rows_out"),
        bytes_in=total("bytes_in"),
        bytes_out=total("bytes_out"),
        files_in=files_in,
        files_out=files_out,
        delete_files_removed=sum(each.count("removed-delete-files") for each in snapshots),
        unfinished=groups.unfinished,
        rounds=times.rounds,
        plan_millis=times.plan_millis,
        run_millis=total("millis"),
        commit_millis=times.commit_millis,
        millis=times.millis,
        groups=(
            *done,
            *(_unpublished(made, "dropped", why) for made, why in groups.dropped),
            *(
                _unpublished(made, "already published", str(groups.already))
                for made in groups.repeated
            ),
            *map(_not_chosen, groups.plan.not_chosen),
        ),
        reason="; ".join(filter(None, [reason, groups.already, groups.unfinished])),
    )


def _compacted(made: RewrittenUnit) -> GroupOutcome:
    group = made.unit.group
    return GroupOutcome(
        partition=made.unit.partition,
        outcome="compacted",
        reason=group.reason,
        rows_in=made.unit.rows,
        rows_out=sum(made.entries.column("record_count").to_pylist()),
        bytes_in=group.bytes,
        bytes_out=sum(made.entries.column("file_size_in_bytes").to_pylist()),
        files_in=len(group.files),
        files_out=len(made.entries),
        millis=made.millis,
    )


def _unpublished(made: RewrittenUnit, outcome: str, reason: str) -> GroupOutcome:
    return GroupOutcome(
        partition=made.unit.partition, outcome=outcome, reason=reason, millis=made.millis
    )


def _not_chosen(unit: CompactUnit) -> GroupOutcome:
    return GroupOutcome(partition=unit.partition, outcome="not chosen", reason=unit.group.reason)
