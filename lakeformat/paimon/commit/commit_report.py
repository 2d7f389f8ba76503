# SPDX-License-Identifier: Apache-2.0
"""The report of a commit, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.manifest import ManifestColumns
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.tables.write_report import WriteReport

__all__ = ["CommitReport", "already_published", "committed", "nothing_to_commit", "replayed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport(WriteReport):
    """The result of one commit."""

    compact_snapshot_id: int | None = None
    """Snapshot of the compaction, if the call published one too."""
    compact_refused: str | None = None
    """The reason why the compaction of the call was not published; its files are deleted."""


def committed(
    handle: TableHandle, snapshot: Snapshot, changes: SnapshotDelta, attempts: int
) -> CommitReport:
    """Report a snapshot that this call published."""
    added = changes.added
    return CommitReport(
        table=handle.uri,
        kind=str(snapshot.commit_kind),
        snapshot_id=snapshot.id,
        rows=int(added.row_count.numbers.sum()),
        files=len(added),
        bytes=int(added.file_size.numbers.sum()),
        deleted_files=len(changes.table) - len(added),
        attempts=attempts,
        replayed=False,
        reason=f"published as snapshot {snapshot.id}",
    )


def replayed(handle: TableHandle, snapshot: Snapshot, delta: ManifestColumns) -> CommitReport:
    """Report a commit that an earlier attempt published, with the changes in ``delta``."""
    report = committed(handle, snapshot, SnapshotDelta(table=delta), 0)
    return replace(
        report,
        replayed=True,
        reason=already_published(snapshot.id),
    )


def already_published(number: int) -> str:
    """Return the text of ``reason`` in a report on a commit that an earlier attempt published."""
    return f"already published as snapshot {number}; no action needed"


def nothing_to_commit(handle: TableHandle, ignored: Sequence[str] = ()) -> CommitReport:
    """Report that nothing changed, so no snapshot was published that could store ``ignored``."""
    lost = (
        f", and {' and '.join(ignored)} not stored (set 'snapshot.ignore-empty-commit' = 'false' "
        "to publish a snapshot for every commit)"
        if ignored
        else ""
    )
    return CommitReport(
        table=handle.uri,
        snapshot_id=None,
        rows=0,
        files=0,
        bytes=0,
        attempts=0,
        replayed=False,
        reason=f"no rows to commit, so no snapshot was published{lost}",
    )
