# SPDX-License-Identifier: Apache-2.0
"""Finds the result of an earlier attempt of a commit, before any row is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakeformat.paimon.commit.commit_report import CommitReport
from lakeformat.paimon.commit.earlier_commit_report import EarlierCommitReport
from lakeformat.paimon.commit.foreign_messages import are_there
from lakeformat.paimon.commit.identity import EarlierCommits, require_same, takes_rows_out
from lakeformat.paimon.commit.overwrite import Dynamic, Replacement
from lakeformat.paimon.commit.redo import Redo
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta, append_changes, compact_changes
from lakeformat.paimon.commit.written_files import written_paths
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.commit_message import CommitMessage
from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.tables.commit_id import CommitId

__all__ = [
    "DATA_KINDS",
    "earlier_tries",
    "find_commit",
    "find_replay",
    "joined",
]

DATA_KINDS = (CommitKind.APPEND, CommitKind.OVERWRITE)


def find_commit(handle: TableHandle, commit: CommitId) -> CommitReport | None:
    """Return the report on an earlier commit of any kind with this identity, or None.

    Raise InvalidRequestError if ``commit.replaces`` names rows that cannot be replaced any more.
    """
    head = _head(handle)
    found = EarlierCommits(handle, commit, tuple(CommitKind)).find(head)
    if found is not None:
        return EarlierCommitReport(handle, SnapshotDelta())(found)
    if commit.replaces is not None:
        Redo(handle, commit)(head)  # refused before any row is written
    return None


def earlier_tries(
    handle: TableHandle,
    commit: CommitId,
    *,
    overwrite: Replacement = None,
    messages: Sequence[CommitMessage] = (),
) -> EarlierCommits:
    """Return the search for earlier attempts of the commit.

    The search finds compactions if the commit only compacts, else appends and overwrites.
    """
    alone = _is_compaction_alone(handle, messages, overwrite)
    return EarlierCommits(handle, commit, (CommitKind.COMPACT,) if alone else DATA_KINDS)


def find_replay(
    handle: TableHandle,
    earlier: EarlierCommits,
    *,
    overwrite: Replacement = None,
    messages: Sequence[CommitMessage] = (),
    rows: int | None = None,
) -> CommitReport | None:
    """Return the report on an earlier attempt of the same commit; None if there is none.

    Return None, too, if the earlier attempt published the rows, but not the compaction of the
    messages. ``rows`` is the number of rows to write, if it is known and there are no messages yet.
    Raise InvalidRequestError if the attempt committed something else, or if the rows that
    ``commit.replaces`` names cannot be replaced.
    """
    data, compaction = append_changes(handle, messages), compact_changes(handle, messages)
    alone = _is_compaction_alone(handle, messages, overwrite)
    head = _head(handle)
    found = earlier.find(head)
    if found is None:
        if earlier.commit.replaces is not None and overwrite is None:
            Redo(handle, earlier.commit)(head)
        return None
    if alone:
        return EarlierCommitReport(handle, compaction, from_elsewhere=True)(found)
    replaces = overwrite is not None or data.changes_rows
    replaces = replaces or takes_rows_out(handle, earlier.commit)
    kind = CommitKind.OVERWRITE if replaces else CommitKind.APPEND
    require_same(handle, found, kind, None)
    report = EarlierCommitReport(handle, data, from_elsewhere=True, rows=rows)(found)
    if compaction.is_empty:
        return report
    return _with_second_half(handle, earlier.commit, report, compaction, messages)


def _is_compaction_alone(
    handle: TableHandle, messages: Sequence[CommitMessage], overwrite: Replacement
) -> bool:
    """Return True if the messages have only a compaction, and ``overwrite`` names no partitions.

    A dynamic overwrite replaces the partitions of new rows, so here it replaces nothing.
    """
    if not isinstance(overwrite, Dynamic | None):
        return False
    is_compaction = not compact_changes(handle, messages).is_empty
    return is_compaction and append_changes(handle, messages).is_empty


def _with_second_half(
    handle: TableHandle,
    commit: CommitId,
    rows: CommitReport,
    compaction: SnapshotDelta,
    messages: Sequence[CommitMessage],
) -> CommitReport | None:
    """Return the report on both snapshots of a call; None if the compaction must still be
    published.

    If the earlier attempt could not publish the compaction and has deleted its files,
    ``compact_refused`` of the report has the reason. No error is raised, because the rows are
    published.
    """
    found = EarlierCommits(handle, commit, (CommitKind.COMPACT,)).find(_head(handle))
    if found is not None:
        return joined(rows, EarlierCommitReport(handle, compaction, from_elsewhere=True)(found))
    halves = [message.compaction_alone() for message in messages]
    if all(are_there([*written_paths(handle, halves)])):
        return None
    refused = (
        "the files of the compaction in this commit do not exist any more, so the compaction "
        f"cannot be published. The rows are published in snapshot {rows.snapshot_id} of "
        f"{handle.uri}, and nothing is lost: compact the table again"
    )
    return replace(rows, compact_refused=refused, reason=f"{rows.reason}; {refused}")


def joined(rows: CommitReport, compacted: CommitReport) -> CommitReport:
    """Return one report on a call: ``rows`` reports its rows, ``compacted`` its compaction."""
    return replace(
        rows,
        compact_snapshot_id=compacted.snapshot_id,
        replayed=rows.replayed and compacted.replayed,
        unpublished_files=rows.unpublished_files + compacted.unpublished_files,
    )


def _head(handle: TableHandle) -> Snapshot | None:
    return latest_snapshot(handle.storage, handle.layout)
