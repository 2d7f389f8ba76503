# SPDX-License-Identifier: Apache-2.0
"""The report of a compaction of a Mixed table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.mixed.compact.plan import MixedCompactPlan
from lakeformat.mixed.compact.run import MergedUnit
from lakeformat.tables.compact_summary import CompactSummary
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

__all__ = ["MixedCompactReport", "merge_report", "replayed_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCompactReport(CompactSummary):
    """The report of one compaction; its numbers are those of the published tasks."""

    unfinished: None = None
    """Always None, because all tasks of a plan are published together."""
    type: str | None = None
    """The strongest kind of optimizing: minor, major or full; None if no partition was optimized.
    """
    partitions: int = 0
    tasks: int = 0
    changes_merged: int = 0
    """The number of rows of the change store that were merged, both inserted and deleted."""
    reason: str
    """The outcome in one sentence, for the log."""

    @property
    def sentence(self) -> str:
        """The outcome with its numbers, in one sentence."""
        return self.reason


def merge_report(
    plan: MixedCompactPlan, made: Sequence[MergedUnit], snapshot: Snapshot | None
) -> MixedCompactReport:
    """Return the report of a compaction; ``snapshot=None`` means that nothing was due."""
    waiting = "" if plan.waiting is None else f"; {plan.waiting}"
    if snapshot is None or not made:
        done = f"no action needed: {plan.optimizing.sentence}"
        if snapshot is not None:
            done = f"{plan.recorded}, published as snapshot {snapshot.snapshot_id}"
        return MixedCompactReport(
            table=plan.table,
            strategy=plan.strategy,
            snapshot_ids=() if snapshot is None else (snapshot.snapshot_id,),
            reason=f"{done}{waiting}",
        )
    old = {file.path: file for each in made for file in each.unit.rewritten}
    deletes = {file.path: file for each in made for file in each.unit.key_deletes}
    changes = [*deletes.values(), *(each for each in old.values() if each.in_change)]
    files = [*old.values(), *deletes.values()]
    entries = [table for each in made for table in (each.entries, *each.deletes)]
    bytes_in = sum(each.split.file.size_bytes for each in files)
    bytes_out, files_out = _total(entries, "file_size_in_bytes"), sum(map(len, entries))
    return MixedCompactReport(
        table=plan.table,
        strategy=plan.strategy,
        snapshot_ids=(snapshot.snapshot_id,),
        rows_in=sum(each.unit.rows for each in made),
        rows_out=_total([each.entries for each in made], "record_count"),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        files_in=len(files),
        files_out=files_out,
        type=None if plan.optimizing.type is None else plan.optimizing.type.value,
        partitions=len(plan.due),
        tasks=len(made),
        changes_merged=sum(each.split.file.record_count or 0 for each in changes),
        reason=f"{plan.optimizing.type} optimizing: {counted(len(files), 'file')} of "
        f"{size(bytes_in)} became {counted(files_out, 'file')} of {size(bytes_out)}, published as "
        f"snapshot {snapshot.snapshot_id}{waiting}",
    )


def replayed_report(table: str, strategy: str, snapshot: Snapshot) -> MixedCompactReport:
    """Return the report of a call whose work an earlier attempt has published."""
    number = snapshot.snapshot_id
    return MixedCompactReport(
        table=table,
        strategy=strategy,
        snapshot_ids=(),
        earlier_snapshot_ids=(number,),
        reason=f"already published as snapshot {number}; no action needed",
    )


def _total(tables: Sequence[Any], column: str) -> int:
    return sum(sum(each.column(column).to_pylist()) for each in tables)
