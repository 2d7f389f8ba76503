# SPDX-License-Identifier: Apache-2.0
"""Warns that a copy of a table may have other rows than the table."""

from __future__ import annotations

import logging

import lakeformat as lake

__all__ = ["warn_of_double_rows", "warn_of_missing_rows", "warn_of_overwrites"]

_log = logging.getLogger(__name__)
_ONE_ROW_WINS = ("deduplicate", "first-row")
"""Merge engines that give the same result if a row is written twice instead of once."""


def warn_of_overwrites(table: lake.Table, source: lake.Table, after: lake.Position) -> None:
    """Log a warning if overwrites of ``source`` after a position were not copied."""
    if source.schema.primary_keys and source.schema.table_options.streaming_read_overwrite:
        return
    skipped = [
        str(each.id)
        for each in source.since(after).snapshots
        if each.commit_kind is lake.CommitKind.OVERWRITE
    ]
    if skipped:
        _log.warning(
            "%s may have other rows than %s: overwrites of the source, in snapshots %s, were not "
            "copied, because changes do not include the rows that an overwrite removes and adds. "
            "If all these overwrites are rescales, no row differs. If not, copy all rows into a "
            "new table with another consumer",
            table.location,
            source.location,
            ", ".join(skipped),
        )


def warn_of_missing_rows(
    table: lake.Table, source: lake.Table, consumer: str, position: int
) -> None:
    """Log a warning that the target may lack changes of ``source`` before snapshot ``position``."""
    _log.warning(
        "%s may lack rows: consumer %r of %s reads snapshot %d next, but the target table has "
        "no commit with the changes before that snapshot. To copy all rows, use a new table and "
        "another consumer",
        table.location,
        consumer,
        source.location,
        position,
    )


def warn_of_double_rows(
    table: lake.Table, source: lake.Table, consumer: str, commit: lake.Snapshot, ended: int
) -> None:
    """Log a warning that the target gets the rows before snapshot ``ended`` of the source twice.

    ``commit`` is the snapshot of the target with the first copy of these rows. The copy was made
    for another consumer, or when the source had another name. Log nothing if the second copy of a
    row changes nothing, because the target keeps one row of each key.
    """
    if table.schema.primary_keys and table.schema.table_options.merge_engine in _ONE_ROW_WINS:
        return
    _log.warning(
        "%s gets rows of %s twice: snapshot %d of the target already has the changes before "
        "snapshot %d of the source, but consumer %r has not read these changes. This is normal if "
        "the target is also filled with another consumer. But if the source was renamed after a "
        "failed run, and only this job has written into the target since: stop the job, roll the "
        "target back to snapshot %d, set a new consumer to %d with `lake consumer set`, and run "
        "the job with the new consumer",
        *(table.location, source.location, commit.id, ended, consumer, commit.id, ended),
    )
