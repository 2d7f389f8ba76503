# SPDX-License-Identifier: Apache-2.0
"""The report of a compaction, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakeformat.iceberg.compact.plan import CompactUnit
from lakeformat.iceberg.compact.run import RewrittenUnit
from lakeformat.tables.compact_summary import CompactSummary
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["CompactReport", "GroupOutcome", "GroupOutcomes", "Times", "compact_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """The outcome of one group of files, and the reason."""

    partition: str
    outcome: str
    """``compacted`` or ``not chosen``."""
    reason: str
    rows_in: int = 0
    """Rows of the old files, with those that deletes removed."""
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    files_in: int = 0
    files_out: int = 0
    millis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport(CompactSummary):
    """The outcome of one compaction; the sums are over the groups that were compacted."""

    delete_files_removed: int = 0
    """Delete files that apply to no data file any more."""
    unfinished: str | None = None
    """Always None: a compaction publishes all of its groups, or none."""
    rounds: int = 0
    """The number of plans; a plan is made again after a conflict."""
    plan_millis: int = 0
    run_millis: int = 0
    """The time of all groups together, although several run at a time."""
    commit_millis: int = 0
    millis: int = 0
    """The time from the first plan to the commit."""
    groups: tuple[GroupOutcome, ...] = ()
    reason: str
    """One sentence for the log."""

    @property
    def sentence(self) -> str:
        """The outcome with its numbers, for people."""
        return self.reason


@dataclass(slots=True)
class Times:
    """The milliseconds of a compaction, and its plans."""

    rounds: int = 0
    plan_millis: int = 0
    commit_millis: int = 0
    millis: int = 0


@dataclass(frozen=True, slots=True)
class GroupOutcomes:
    """The groups of the last plan."""

    made: Sequence[RewrittenUnit] = ()
    not_chosen: Sequence[CompactUnit] = ()


def compact_report(
    table: str,
    strategy: str,
    snapshot_id: int | None,
    delete_files_removed: int,
    groups: GroupOutcomes,
    times: Times,
) -> CompactReport:
    """Report a compaction by its groups."""
    done = [_compacted(each) for each in groups.made]

    def total(name: str) -> int:
        return sum(getattr(each, name) for each in done)

    files_in, files_out = total("files_in"), total("files_out")
    reason = "no action needed: no group of files is due"
    if snapshot_id is not None:
        reason = (
            f"{counted(files_in, 'file')} of {size(total('bytes_in'))} became "
            f"{counted(files_out, 'file')} of {size(total('bytes_out'))}, published as snapshot "
            f"{snapshot_id}"
        )
    return CompactReport(
        table=table,
        strategy=strategy,
        snapshot_ids=() if snapshot_id is None else (snapshot_id,),
        rows_in=total("rows_in"),
        rows_out=total("rows_out"),
        bytes_in=total("bytes_in"),
        bytes_out=total("bytes_out"),
        files_in=files_in,
        files_out=files_out,
        delete_files_removed=delete_files_removed,
        rounds=times.rounds,
        plan_millis=times.plan_millis,
        run_millis=total("millis"),
        commit_millis=times.commit_millis,
        millis=times.millis,
        groups=(*done, *map(_not_chosen, groups.not_chosen)),
        reason=reason,
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


def _not_chosen(unit: CompactUnit) -> GroupOutcome:
    return GroupOutcome(partition=unit.partition, outcome="not chosen", reason=unit.group.reason)
