# SPDX-License-Identifier: Apache-2.0
"""The report of a compaction of delete files."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.iceberg.deletes.delete_plan import DeletePlan
from lakeformat.iceberg.write.publish import PublishedChange
from lakeformat.tables.report import Report
from lakeformat.types.count_text import counted

__all__ = ["CompactDeletesReport", "deletes_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactDeletesReport(Report):
    """The report of a compaction of delete files, or of its dry run."""

    table: str
    dry_run: bool
    snapshot_id: int | None
    """The id of the published snapshot; None if nothing was published."""
    dangling: int
    """The number of delete files that applied to no data file and were removed, or would be in a
    dry run.
    """
    replaced: int
    """The number of delete files that were replaced by new ones, or would be in a dry run."""
    added: int | None
    """The number of new delete files, including deletion vectors; None in a dry run with work to
    do.
    """
    positions: int | None
    """The number of rows that the new delete files delete; None in a dry run with work to do."""
    replayed: bool = False
    """True if an earlier attempt with the same ``commit`` published the change."""
    reason: str
    """The outcome in one sentence, for the log."""


def deletes_report(
    table: str,
    plan: DeletePlan | None,
    published: PublishedChange | None,
    *,
    dry_run: bool = False,
) -> CompactDeletesReport:
    """Return the report, from the last plan and the summary of the snapshot.

    ``plan`` is None if an earlier attempt had published the change. ``published`` is None in a dry
    run, and if there is nothing to change.
    """
    dangling, replaced = (0, 0) if plan is None else (len(plan.dangling), len(plan.replaced))
    snapshot = None if published is None else published.snapshot
    is_replayed = published is not None and published.is_replayed
    added, positions = 0, 0
    if snapshot is not None and not is_replayed:
        added = snapshot.count("added-delete-files")
        positions = snapshot.count("added-position-deletes")
    is_due = bool(dangling or replaced)
    reason = "no delete file needs merging"
    if is_replayed:
        assert snapshot is not None
        reason = f"already published as snapshot {snapshot.snapshot_id}; no action needed"
    elif dry_run and is_due:
        reason = f"would {_steps(replaced, dangling, None)}"
    elif snapshot is not None:
        steps = _steps(replaced, dangling, added)
        reason = f"{steps}; published as snapshot {snapshot.snapshot_id}"
    return CompactDeletesReport(
        table=table,
        dry_run=dry_run,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        dangling=dangling,
        replaced=replaced,
        added=None if dry_run and is_due else added,
        positions=None if dry_run and is_due else positions,
        replayed=is_replayed,
        reason=reason,
    )


def _steps(replaced: int, dangling: int, added: int | None) -> str:
    """Return the work as text; ``added`` is the number of new delete files, None in a dry run."""
    steps: list[str] = []
    past = "" if added is None else "d"
    if replaced:
        by = "" if added is None else f" by {counted(added, 'new one')}"
        steps.append(f"replace{past} {counted(replaced, 'delete file')}{by}")
    if dangling:
        steps.append(f"remove{past} {counted(dangling, 'delete file')} that no data file needs")
    return " and ".join(steps)
