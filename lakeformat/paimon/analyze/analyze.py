# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of the newest snapshot once, and publishes their statistics.

The statistics describe the snapshot that was read, and store its id as ``snapshotId``. Later
snapshots inherit the statistics until the schema changes. So before a reader uses statistics, it
compares ``snapshotId`` with the id of the newest snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.paimon.analyze.analyze_report import AnalyzeReport
from lakeformat.paimon.analyze.column import ColumnSummary, can_be_analyzed
from lakeformat.paimon.commit.commit import CommitOptions, commit_statistics
from lakeformat.paimon.commit.earlier_result import find_commit
from lakeformat.paimon.commit.same_table import require_there
from lakeformat.paimon.expiry_race import again_if_overtaken
from lakeformat.paimon.handle import TableHandle, require_allowed, with_newest_schema
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.metadata.statistics import ColumnStatistics, TableStatistics
from lakeformat.paimon.options.operation import Operation
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.paimon.read.scan import Scan
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.scan_arguments import columns_named
from lakeformat.types.closest import closest
from lakeformat.types.count_text import counted
from lakeformat.types.type_text import type_to_sql
from lakeformat.types.types import DataField

__all__ = ["OnRows", "analyze"]

_log = logging.getLogger(__name__)
ALL_COLUMNS = "all"

OnRows: TypeAlias = Callable[[int], object]
"""Called with the number of rows read so far."""


def analyze(
    handle: TableHandle,
    *,
    columns: Sequence[str] | None = None,
    commit: CommitId | None = None,
    dry_run: bool = False,
    on_progress: OnRows | None = None,
) -> AnalyzeReport:
    """Count the rows, compute statistics of ``columns``, and publish both as a snapshot.

    ``columns`` lists names or is ``"all"``; ``columns=None`` counts only rows. A dry run reads the
    rows and publishes nothing. Raise InvalidRequestError for an unknown column, and
    UnsupportedError for a type without statistics. Raise UnsupportedError, too, if the table cannot
    be committed to; a dry run does not check this. If the rows cannot be read, and a new snapshot
    was committed meanwhile, the new snapshot is read instead. Raise SnapshotExpiredError after ten
    such attempts.
    """
    is_empty = latest_snapshot(handle.storage, handle.layout) is None
    handle = with_newest_schema(handle)
    _chosen(handle, columns)
    if not dry_run:
        require_allowed(handle, Operation.COMMIT)
    nothing = AnalyzeReport(
        table=handle.uri,
        dry_run=dry_run,
        snapshot_id=None,
        statistics=None,
        reason="the table has no snapshot, so there is nothing to count",
    )
    if is_empty:
        require_there(handle)
        return nothing
    done = find_commit(handle, commit) if commit is not None else None
    if done is not None:
        return replace(nothing, snapshot_id=done.snapshot_id, replayed=True, reason=done.reason)
    statistics, skipped = again_if_overtaken(handle, lambda: _newest(handle, columns, on_progress))
    found = replace(nothing, statistics=statistics, skipped=skipped)
    rows = counted(statistics.merged_record_count or 0, "row")
    columns_text = counted(len(statistics.columns), "column")
    of_columns = f" and computed statistics of {columns_text}" if statistics.columns else ""
    what = f"counted {rows}{of_columns} in snapshot {statistics.snapshot_id}"
    if dry_run:
        return replace(found, reason=f"{what}; nothing was published")
    published = commit_statistics(handle, statistics, CommitOptions(commit=commit))
    reason = f"{what}; {published.reason}"
    report = replace(
        found,
        snapshot_id=published.snapshot_id,
        replayed=published.replayed,
        reason=reason,
    )
    _log.info("analyze of %s: %s", handle.name, reason)
    return report


def _chosen(
    handle: TableHandle, columns: Sequence[str] | None
) -> tuple[list[DataField], tuple[str, ...]]:
    """Return the columns to analyze, and the names that ``"all"`` skips for their types.

    Raise InvalidRequestError for an unknown name, and UnsupportedError for a type without
    statistics.
    """
    fields = handle.schema.fields
    if columns is None:
        return [], ()
    if isinstance(columns, str) and columns == ALL_COLUMNS:
        skipped = tuple(field.name for field in fields if not can_be_analyzed(field.type))
        return [field for field in fields if field.name not in skipped], skipped
    by_name = {field.name: field for field in fields}
    names = columns_named(columns)
    unknown = [name for name in names if name not in by_name]
    if unknown or not names:
        near = closest(unknown[0], by_name) if unknown else ""
        raise InvalidRequestError(
            f"columns must be 'all' or list some of {', '.join(by_name)}; got {columns!r}{near}"
        )
    for name in names:
        if not can_be_analyzed(by_name[name].type):
            raise UnsupportedError(
                f"column {name!r} is {type_to_sql(by_name[name].type)}, a type without "
                "statistics: leave it out, or pass 'all', which skips it"
            )
    return [by_name[name] for name in dict.fromkeys(names)], ()


def _newest(
    handle: TableHandle, columns: Sequence[str] | None, on_progress: OnRows | None
) -> tuple[TableStatistics, tuple[str, ...]]:
    """Return the statistics of the newest snapshot, and the names that ``"all"`` skipped.

    Raise NotFoundError if the table was dropped meanwhile.
    """
    head = latest_snapshot(handle.storage, handle.layout)
    if head is None:
        raise NotFoundError(
            f"{handle.uri} was dropped while its rows were counted: nothing was published"
        )
    handle = with_newest_schema(handle)
    chosen, skipped = _chosen(handle, columns)
    return _statistics(handle, head, chosen, on_progress), skipped


def _statistics(
    handle: TableHandle, head: Snapshot, columns: Sequence[DataField], on_progress: OnRows | None
) -> TableStatistics:
    files = plan_columns(handle, head).columns
    size = int(files.file_size.numbers.sum())
    rows, found = _read(handle, head, columns, on_progress)
    total = max(head.total_record_count, rows)
    return TableStatistics(
        snapshot_id=head.id,
        schema_id=handle.schema.id,
        merged_record_count=rows,
        merged_record_size=size * rows // total if total else 0,
        columns=found,
    )


def _read(
    handle: TableHandle, head: Snapshot, columns: Sequence[DataField], on_progress: OnRows | None
) -> tuple[int, dict[str, ColumnStatistics]]:
    """Return the number of rows after the merge of keys, and the statistics by column name."""
    if not columns:
        return Scan(handle, head, None).count(), {}
    summaries = [ColumnSummary(column) for column in columns]
    rows = 0
    for batch in Scan(handle, head, [column.name for column in columns]).to_batches():
        rows += batch.num_rows
        if on_progress is not None:
            on_progress(rows)
        for summary, values in zip(summaries, batch.columns, strict=True):
            summary.add(values)
    return rows, {each.column.name: each.result() for each in summaries}
